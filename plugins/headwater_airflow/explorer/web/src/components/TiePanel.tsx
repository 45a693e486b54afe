/** What one line between two records stands for: the runs that made the one from the other. */
import type { CrossedRun } from "../api";
import type { Tie } from "../graph/model";
import { go } from "../route";
import { partsOf, shorten } from "../words";
import { RunCard } from "./RunCard";

function End({ title, id }: { title: string; id: string }) {
  const { dataset, place } = partsOf(id);
  return (
    <>
      <dt>{title}</dt>
      <dd>
        <button type="button" className="row" title={id} onClick={() => go({ view: "record", id })}>
          <span className="place">{shorten(place, 34)}</span>
          <span className="quiet">{dataset}</span>
        </button>
      </dd>
    </>
  );
}

export function TiePanel({ tie, runs }: { tie: Tie; runs: ReadonlyMap<string, CrossedRun> }) {
  return (
    <>
      <h2>Made from</h2>
      <dl className="ends">
        <End title="Output" id={tie.output} />
        <End title="Input" id={tie.input} />
      </dl>
      {tie.runs.map((name) => {
        const run = runs.get(name);
        return run && <RunCard key={name} run={run} />;
      })}
    </>
  );
}
