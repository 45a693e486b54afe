/** The results of a job, the newest first, or those around a time. */
import { useCallback, useState } from "react";

import { api } from "../../api";
import { go } from "../../route";
import { text, time } from "../../words";
import { useLoaded } from "../loading";
import { Failure, Loading } from "../states";
import { Hidden } from "./Hidden";

const PAGE = 50;
const MOST = 500;

export function JobView({ run }: { run: string }) {
  const [dataset, setDataset] = useState("");
  const [around, setAround] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const at = around ? Date.parse(`${around}Z`) : Number.NaN;
  const [jobs] = useLoaded(useCallback((signal: AbortSignal) => api.jobs(signal), []));
  const [results, again] = useLoaded(
    useCallback(
      (signal: AbortSignal) =>
        api.results(
          { run, limit, ...(dataset ? { dataset } : {}), ...(Number.isNaN(at) ? {} : { around: at }) },
          signal,
        ),
      [run, dataset, at, limit],
    ),
  );
  const job = jobs.state === "there" ? jobs.value.find((one) => one.run === run) : undefined;
  return (
    <div className="sheet">
      <h2>Results of {run}</h2>
      <div className="filters">
        <label>
          Dataset{" "}
          <select aria-label="Results in" className="field" value={dataset} onChange={(event) => setDataset(event.target.value)}>
            <option value="">all</option>
            {job?.results.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
        <label>
          Within a minute of (UTC){" "}
          <input
            type="datetime-local"
            step="1"
            className="field"
            value={around}
            onChange={(event) => setAround(event.target.value)}
          />
        </label>
      </div>
      {results.state === "loading" && <Loading what="results" />}
      {results.state === "failed" &&
        (job?.until === null ? (
          <p className="quiet">This run has not published anything yet. Look again when it has.</p>
        ) : (
          <Failure error={results.error} onRetry={again} />
        ))}
      {results.state === "there" && (
        <>
          <Hidden may={results.value.may_see_contents} />
          {results.value.results.length ? (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Time (UTC)</th>
                    <th scope="col">Result</th>
                    {results.value.may_see_contents && <th scope="col">Content</th>}
                  </tr>
                </thead>
                <tbody>
                  {results.value.results.map((one) => (
                    <tr key={one.id}>
                      <td>{time(one.time)}</td>
                      <th scope="row">
                        <button type="button" className="link place" onClick={() => go({ view: "result", id: one.id })}>
                          {one.id}
                        </button>
                      </th>
                      {results.value.may_see_contents && (
                        <td className="place">{text(one.content) || "not in the lake any more"}</td>
                      )}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <p className="quiet">No results here.</p>
          )}
          {results.value.results.length === limit && limit < MOST && (
            <button type="button" className="button" onClick={() => setLimit(Math.min(MOST, limit * 2))}>
              Show more results
            </button>
          )}
        </>
      )}
    </div>
  );
}
