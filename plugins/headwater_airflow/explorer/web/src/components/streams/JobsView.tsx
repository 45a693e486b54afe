/** All runs of stream queries, and how they go. */
import { useCallback } from "react";

import { api, type Job, type Lag } from "../../api";
import { go } from "../../route";
import { time } from "../../words";
import { useLoaded, type Loaded } from "../loading";
import { Empty, Failure, Loading } from "../states";

export function JobsView() {
  const [jobs, again] = useLoaded(
    useCallback((signal: AbortSignal) => api.jobs(signal), []),
    isGoingOn,
  );
  // Of Kafka, which may be away: the list does not wait for it.
  const [lags] = useLoaded(useCallback((signal: AbortSignal) => api.lags(signal), []));
  if (jobs.state === "loading") return <Loading what="stream jobs" />;
  if (jobs.state === "failed") return <Failure error={jobs.error} onRetry={again} />;
  if (!jobs.value.length) {
    return (
      <Empty title="No stream jobs yet">
        Start the DAG <code>stream_jobs</code>, or run a query with <code>headwater streams run</code>, then look again.
      </Empty>
    );
  }
  return (
    <div className="sheet">
      <h2>Stream jobs</h2>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">Query</th>
              <th scope="col">Health</th>
              <th scope="col" title="No event before this time can come any more">
                Watermark (UTC)
              </th>
              <th scope="col" className="number">
                Late
              </th>
              <th scope="col" className="number">
                Rejected
              </th>
              <th scope="col" className="number" title="Live messages that are not in the lake graph yet">
                Behind
              </th>
              <th scope="col">Read</th>
              <th scope="col">Last heard of (UTC)</th>
            </tr>
          </thead>
          <tbody>
            {jobs.value.map((job) => (
              <Row key={job.run} job={job} lags={lags} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function isGoingOn(jobs: Job[]): boolean {
  return jobs.some((job) => job.state === "running");
}

function Row({ job, lags }: { job: Job; lags: Loaded<Record<string, Lag>> }) {
  const lag = lags.state === "there" ? lags.value[job.run] : undefined;
  const faults = [...job.faults, ...(lag?.faults ?? [])];
  return (
    <tr>
      <th scope="row">
        <button type="button" className="link" onClick={() => go({ view: "job", run: job.run })}>
          {job.run}
        </button>
      </th>
      <td>{job.query}</td>
      <td>
        <Health job={job} faults={faults} />
      </td>
      <td>{job.until === null ? "nothing published yet" : time(job.until)}</td>
      <td className="number">{job.late.toLocaleString("en")}</td>
      <td className="number">{job.rejected.toLocaleString("en")}</td>
      <td className="number">{job.state === "running" ? behind(lags, lag) : ""}</td>
      <td className="versions">{job.read.join(", ")}</td>
      <td>{time(Date.parse(job.heard))}</td>
    </tr>
  );
}

function behind(lags: Loaded<Record<string, Lag>>, lag: Lag | undefined): string {
  if (lags.state === "loading") return "…";
  if (lags.state === "failed") return "not known";
  return lag?.lag === null || lag === undefined ? "tells nothing" : lag.lag.toLocaleString("en");
}

function Health({ job, faults }: { job: Job; faults: string[] }) {
  if (faults.length) {
    return (
      <>
        <span className="badge partial">
          <span aria-hidden="true">!</span> {job.state}
        </span>
        <ul className="faults" aria-label={`What is wrong with ${job.run}`}>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      </>
    );
  }
  return job.state === "running" ? (
    <span className="badge state-live">
      <i className="pulse" aria-hidden="true" /> running
    </span>
  ) : (
    <span className="badge state-expired">finished</span>
  );
}
