/** Datasets and records as they are typed: a combobox, as ARIA describes it. */
import { useEffect, useId, useState, type KeyboardEvent } from "react";

import { api, type Found } from "../api";
import { go, type Route } from "../route";
import { hueOf } from "./nodes";
import { partsOf, shorten } from "../words";

interface Choice {
  key: string;
  route: Route;
  hue: string;
  title: string;
  note: string;
}

const NOTHING: Choice[] = [];
const PAUSE = 200;

function choicesOf(found: Found): Choice[] {
  const datasets = found.datasets.slice(0, 6).map<Choice>((name) => ({
    key: `dataset ${name}`,
    route: { view: "dataset", name },
    hue: hueOf(name),
    title: name,
    note: "dataset",
  }));
  const records = found.records.map<Choice>(({ id }) => {
    const { dataset, version, place } = partsOf(id);
    return {
      key: id,
      route: { view: "record", id },
      hue: hueOf(dataset),
      title: shorten(place, 48),
      note: shorten(`${dataset} · ${version}`, 44),
    };
  });
  return [...datasets, ...records];
}

export function SearchBox() {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [choices, setChoices] = useState(NOTHING);
  const [state, setState] = useState<"idle" | "busy" | "done" | string>("idle");
  const [at, setAt] = useState(0);
  const list = useId();

  useEffect(() => {
    const wanted = text.trim();
    if (!wanted) {
      setChoices(NOTHING);
      setState("idle");
      return;
    }
    const gone = new AbortController();
    const timer = setTimeout(async () => {
      setState("busy");
      try {
        setChoices(choicesOf(await api.search({ text: wanted, limit: 12 }, gone.signal)));
        setAt(0);
        setState("done");
      } catch (error) {
        if (gone.signal.aborted) return;
        setChoices(NOTHING);
        setState(error instanceof Error ? error.message : "The search failed.");
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [text]);

  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    go(choice.route);
    setOpen(false);
    setText("");
  };
  const walk = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((before) => (choices.length ? (before + step + choices.length) % choices.length : 0));
    } else if (event.key === "Enter") {
      choose(choices[at]);
    } else if (event.key === "Escape") {
      setOpen(false);
    }
  };

  const shown = open && text.trim() !== "";
  return (
    <div className="search" onBlur={(event) => event.currentTarget.contains(event.relatedTarget) || setOpen(false)}>
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <circle cx="11" cy="11" r="6.5" />
        <path d="m16 16 4.5 4.5" />
      </svg>
      <input
        type="search"
        role="combobox"
        placeholder="Search a dataset, or the beginning of a record's id"
        aria-label="Search datasets and records"
        aria-expanded={shown}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={shown && choices[at] ? `${list}-${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={walk}
      />
      {shown && (
        <div className="choices">
          <ul role="listbox" id={list} aria-label="What was found">
            {choices.map((choice, place) => (
              <li
                key={choice.key}
                id={`${list}-${place}`}
                role="option"
                aria-selected={place === at}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => choose(choice)}
                onMouseEnter={() => setAt(place)}
              >
                <i className="swatch" style={{ background: choice.hue }} />
                <span>{choice.title}</span>
                <span className="quiet">{choice.note}</span>
              </li>
            ))}
          </ul>
          {!choices.length && (
            <p className="quiet" role="status">
              {state === "done" ? "Nothing begins like this." : state === "busy" || state === "idle" ? "Searching …" : state}
            </p>
          )}
        </div>
      )}
    </div>
  );
}
