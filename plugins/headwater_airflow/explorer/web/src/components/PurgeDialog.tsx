/** From here to a purge: records are selected, and the purge's form is filled in with the selection's id alone. */
import { useEffect, useRef, useState, type SubmitEvent } from "react";

import { api, readParams, trigger, type Param, type Selection, type SelectionBody } from "../api";
import { airflowUrl, leave } from "../leave";
import { count } from "../words";
import { asError } from "./loading";
import { ParamField } from "./ParamField";
import { Loading } from "./states";

export type From = { id: string } | { dataset: string };

interface Form {
  selection: Selection;
  params: Record<string, Param>;
}

/** The parameter of the purge's DAG that takes a selection's id. */
const SELECTION = "selection";
/** The one that takes ids instead, which the selection holds already. */
const RECORDS = "records";

async function prepare(body: SelectionBody): Promise<Form> {
  const selection = await api.select(body);
  try {
    return { selection, params: await readParams(selection.dag_id) };
  } catch (error) {
    throw new Error(
      `The records are selected as ${selection.selection}, but the form of DAG ${selection.dag_id} cannot be opened: ` +
        `${asError(error).message} On the command line: headwater purge plan ${selection.selection}`,
    );
  }
}

export function PurgeDialog({ from, onClose }: { from: From; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [form, setForm] = useState<Form | null>(null);
  const [busy, setBusy] = useState("id" in from);
  const [error, setError] = useState<Error | null>(null);

  const select = async (body: SelectionBody) => {
    setBusy(true);
    setError(null);
    try {
      setForm(await prepare(body));
    } catch (failure) {
      setError(asError(failure));
    } finally {
      setBusy(false);
    }
  };
  // The dialog is there for one place, so it begins once.
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    dialog.current?.showModal();
    if ("id" in from) void select({ by: "ids", ids: [from.id] });
  });

  const start = async (values: Record<string, unknown>) => {
    if (!form) return;
    setBusy(true);
    setError(null);
    try {
      const run = await trigger(form.selection.dag_id, values);
      leave(airflowUrl("dags", form.selection.dag_id, "runs", run));
    } catch (failure) {
      setError(asError(failure));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="purge-title" onClose={onClose}>
      <h2 id="purge-title">Plan a purge</h2>
      {error && (
        <p className="notice" role="alert">
          {error.message}
        </p>
      )}
      {!form && "dataset" in from && (
        <SelectForm dataset={from.dataset} busy={busy} onSelect={(body) => void select(body)} />
      )}
      {busy && !form && <Loading what="the selection" />}
      {form && <TriggerForm form={form} busy={busy} onStart={(values) => void start(values)} />}
      <button type="button" className="button plain close" aria-label="Close" onClick={() => dialog.current?.close()}>
        ✕
      </button>
    </dialog>
  );
}

interface SelectProps {
  dataset: string;
  busy: boolean;
  onSelect: (body: SelectionBody) => void;
}

function SelectForm({ dataset, busy, onSelect }: SelectProps) {
  const [by, setBy] = useState<"where" | "keys">("where");
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("text"));
    const keys = text.split("\n").filter(Boolean).map((line) => line.split(",").map((part) => part.trim()));
    onSelect(by === "where" ? { by, dataset, where: text } : { by, dataset, keys });
  };
  return (
    <form onSubmit={submit}>
      <p>Which records of {dataset}, in all its versions?</p>
      <div className="segments" role="radiogroup" aria-label="Select by">
        {(["where", "keys"] as const).map((way) => (
          <label key={way}>
            <input type="radio" name="by" checked={by === way} onChange={() => setBy(way)} />
            {way === "where" ? "A condition" : "Keys"}
          </label>
        ))}
      </div>
      <textarea
        name="text"
        className="field"
        required
        rows={4}
        spellCheck={false}
        autoComplete="off"
        aria-label={by === "where" ? "Spark SQL condition" : "Keys, a line each"}
        placeholder={by === "where" ? "handle = '…' AND language = 'en'" : "one key a line, parts separated by commas"}
      />
      <p className="quiet">What you type selects, and is neither kept nor logged. Nothing is changed yet.</p>
      <button type="submit" className="button primary" disabled={busy}>
        Select
      </button>
    </form>
  );
}

function TriggerForm({ form, busy, onStart }: { form: Form; busy: boolean; onStart: (values: Record<string, unknown>) => void }) {
  const { selection, params } = form;
  const [values, setValues] = useState<Record<string, unknown>>(() => ({
    ...Object.fromEntries(Object.entries(params).map(([name, { value }]) => [name, value])),
    [SELECTION]: selection.selection,
  }));
  const chosen = Object.entries(selection.datasets).map(([name, number]) => `${count(number, "record")} of ${name}`);
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    onStart(values);
  };
  return (
    <form onSubmit={submit}>
      <p>
        Selected as <code>{selection.selection}</code>: {chosen.join(", ")}. The plan shows what else would change, and
        someone else has to approve it.
      </p>
      {Object.entries(params).filter(([name]) => name !== RECORDS).map(([name, param]) => (
        <ParamField
          key={name}
          name={name}
          param={param}
          value={values[name]}
          isFixed={name === SELECTION}
          onChange={(value) => setValues((before) => ({ ...before, [name]: value }))}
        />
      ))}
      <button type="submit" className="button danger solid" disabled={busy}>
        {busy ? "Starting …" : "Start planning"}
      </button>
    </form>
  );
}
