/** One run: its verdict and account, and the way to the DAG run that made it. */
import { useCallback } from "react";

import { api, type CrossedRun, type RunFacts } from "../api";
import { airflowUrl, leaving } from "../leave";
import { count } from "../words";
import { LiveBadge } from "./Live";
import { useLoaded } from "./loading";
import { VerdictBadge } from "./Verdict";

export function RunCard({ run }: { run: CrossedRun }) {
  const [facts, again] = useLoaded(
    useCallback((signal: AbortSignal) => api.run(run.run, signal), [run.run]),
    isGrowing,
  );
  const made = run.dag_run;
  return (
    <section className="card">
      <h3>
        {run.dic} {run.live && <LiveBadge />} <VerdictBadge verdict={run.verdict} pruned={run.pruned} />
      </h3>
      <p className="id">{run.run}</p>
      {facts.state === "loading" && <p className="quiet">Loading its account …</p>}
      {facts.state === "failed" && (
        <p className="quiet" role="alert">
          {facts.error.message}{" "}
          <button type="button" className="button plain" onClick={again}>
            Try again
          </button>
        </p>
      )}
      {facts.state === "there" && <Account facts={facts.value} />}
      {made ? (
        <a
          className="button"
          href={airflowUrl("dags", made.dag_id, "runs", made.run_id)}
          onClick={leaving}
          title={`${made.dag_id} · ${made.run_id}`}
        >
          Open DAG run of {made.dag_id}
        </a>
      ) : (
        <p className="quiet">Not made by a DAG run that you may see.</p>
      )}
    </section>
  );
}

function isGrowing(facts: RunFacts): boolean {
  return Boolean(facts.live);
}

function Account({ facts }: { facts: RunFacts }) {
  const faults = [
    facts.missing && count(facts.missing, "message") + " missing",
    facts.rejected && `${facts.rejected.toLocaleString("en")} rejected`,
    facts.duplicates && `${facts.duplicates.toLocaleString("en")} repeated`,
    facts.discarded && `${facts.discarded.toLocaleString("en")} discarded`,
  ].filter(Boolean);
  return (
    <dl>
      {facts.edges !== null && (
        <>
          <dt>Derivations</dt>
          <dd>{facts.edges.toLocaleString("en")}</dd>
        </>
      )}
      {facts.messages !== null && (
        <>
          <dt>Messages</dt>
          <dd>{[facts.messages.toLocaleString("en"), ...faults].join(", ")}</dd>
        </>
      )}
      {facts.merged_at && (
        <>
          <dt>{facts.live ? "Last told" : "Merged"}</dt>
          <dd>{new Date(facts.merged_at).toLocaleString()}</dd>
        </>
      )}
    </dl>
  );
}
