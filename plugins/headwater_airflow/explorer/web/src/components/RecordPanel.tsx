/** One record: how much lies on each side of it, and what can be done from here. */
import { useCallback, useState } from "react";

import { api, type Direction, type RecordFacts, type Side } from "../api";
import { expansionKey, type Expansion, type Shown } from "../graph/model";
import { go } from "../route";
import { count, partsOf } from "../words";
import { ExportMenu } from "./ExportMenu";
import { LiveIn } from "./Live";
import { useLoaded } from "./loading";
import { hueOf } from "./nodes";
import { PurgeDialog } from "./PurgeDialog";
import { RunCard } from "./RunCard";
import { VerdictBadge } from "./Verdict";

interface Props {
  id: string;
  shown: Shown;
  depth: number;
  mayPurge: boolean;
  onExpand: (direction: Direction) => void;
  onError: (error: Error) => void;
}

export function RecordPanel({ id, shown, depth, mayPurge, onExpand, onError }: Props) {
  const [facts, again] = useLoaded(
    useCallback((signal: AbortSignal) => api.record(id, signal), [id]),
    isGrowing,
  );
  const [purging, setPurging] = useState(false);
  const { dataset, version, place } = partsOf(id);
  const around = new Set([...shown.ties.values()].filter((tie) => tie.output === id || tie.input === id).flatMap((tie) => tie.runs));
  const purge = facts.state === "there" ? facts.value.purge : (shown.records.get(id)?.purge ?? null);
  return (
    <>
      <h2>{place}</h2>
      <dl>
        <dt>Dataset</dt>
        <dd>
          <button type="button" className="link" onClick={() => go({ view: "dataset", name: dataset })}>
            <i className="swatch" style={{ background: hueOf(dataset) }} /> {dataset}
          </button>
        </dd>
        <dt>Version</dt>
        <dd>{version}</dd>
      </dl>
      <p className="id">{id}</p>
      {facts.state === "there" && <LiveIn runs={facts.value.live} />}
      {purge && (
        <p className="notice">
          This record was purged by plan <code>{purge}</code>. Its id stays, so that what was made from it can be told.
        </p>
      )}
      <div className="sides">
        {(["backward", "forward"] as const).map((direction) => (
          <SideCard
            key={direction}
            direction={direction}
            depth={depth}
            side={facts.state === "there" ? facts.value[direction] : null}
            expansion={shown.expansions.get(expansionKey(id, direction))}
            onExpand={() => onExpand(direction)}
          />
        ))}
      </div>
      {facts.state === "failed" && (
        <p className="notice" role="alert">
          {facts.error.message}{" "}
          <button type="button" className="button plain" onClick={again}>
            Try again
          </button>
        </p>
      )}
      <div className="actions">
        {id !== shown.start && (
          <button type="button" className="button" onClick={() => go({ view: "record", id })}>
            Begin here
          </button>
        )}
        <ExportMenu id={id} onError={onError} />
        {mayPurge && !purge && (
          <button type="button" className="button danger" onClick={() => setPurging(true)}>
            Plan a purge from here …
          </button>
        )}
      </div>
      {around.size > 0 && <h3 className="heading">Runs behind its lines</h3>}
      {[...around].map((name) => {
        const run = shown.runs.get(name);
        return run && <RunCard key={name} run={run} />;
      })}
      {purging && <PurgeDialog from={{ id }} onClose={() => setPurging(false)} />}
    </>
  );
}

function isGrowing(facts: RecordFacts): boolean {
  return facts.live.length > 0;
}

interface SideProps {
  direction: Direction;
  depth: number;
  side: Side | null;
  expansion: Expansion | undefined;
  onExpand: () => void;
}

function SideCard({ direction, depth, side, expansion, onExpand }: SideProps) {
  const backward = direction === "backward";
  const isBegun = expansion?.depth === depth;
  const isDone = isBegun && expansion.loaded >= expansion.total;
  return (
    <section className="card">
      <h3>
        {backward ? "← Made from" : "Made into →"} {side && side.records > 0 && <VerdictBadge verdict={side.verdict} />}
      </h3>
      <p className="quiet">
        {side === null ? "…" : side.records ? count(side.records, "record") : backward ? "nothing: a source" : "nothing yet"}
      </p>
      <button
        type="button"
        className="button primary"
        disabled={side?.records === 0 || isDone}
        aria-label={`Expand ${direction}, ${count(depth, "step")}`}
        onClick={onExpand}
      >
        {isDone ? "All shown" : isBegun ? "Expand further" : `Expand ${count(depth, "step")}`}
      </button>
    </section>
  );
}
