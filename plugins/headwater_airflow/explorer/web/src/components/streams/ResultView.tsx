/** What a result was made from, with the checkpoint before each. */
import { useCallback } from "react";

import { api } from "../../api";
import { go } from "../../route";
import { text, time } from "../../words";
import { useLoaded } from "../loading";
import { Failure, Loading } from "../states";
import { Hidden } from "./Hidden";

export function ResultView({ id }: { id: string }) {
  const [sources, again] = useLoaded(useCallback((signal: AbortSignal) => api.sources(id, signal), [id]));
  if (sources.state === "loading") return <Loading what="its sources" />;
  if (sources.state === "failed") return <Failure error={sources.error} onRetry={again} />;
  const { run, query, exact, note, may_see_contents: may } = sources.value;
  return (
    <div className="sheet">
      <h2>{exact ? "Made from" : "May be made from"}</h2>
      <p className="id">{id}</p>
      <p>
        By {query},{" "}
        <button type="button" className="link" onClick={() => go({ view: "job", run })}>
          {run}
        </button>
        .
      </p>
      {note && <p className="warning">{note}</p>}
      <Hidden may={may} />
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Time (UTC)</th>
              <th scope="col">Source</th>
              {may && <th scope="col">Content</th>}
              <th scope="col" className="number">
                Step
              </th>
              <th scope="col" className="number">
                Checkpoint before
              </th>
            </tr>
          </thead>
          <tbody>
            {sources.value.sources.map((one) => (
              <tr key={one.id}>
                <td>{time(one.time)}</td>
                <th scope="row" className="place">
                  {one.id}
                </th>
                {may && <td className="place">{text(one.content) || "not there any more"}</td>}
                <td className="number">{one.step}</td>
                <td className="number">{one.checkpoint ?? "the beginning"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="actions">
        <button
          type="button"
          className="button primary"
          disabled={!may}
          title={may ? undefined : "A replay is all contents: who may start a purge sees it."}
          onClick={() => go({ view: "replay", id })}
        >
          Replay step by step
        </button>
        <button type="button" className="button" onClick={() => go({ view: "record", id })}>
          Show in the lineage
        </button>
      </div>
    </div>
  );
}
