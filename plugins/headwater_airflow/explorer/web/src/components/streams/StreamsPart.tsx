/** Stream jobs: from the list of them to a result, what it was made from, and how. */
import { go, type StreamRoute } from "../../route";
import { partsOf, shorten } from "../../words";
import { JobsView } from "./JobsView";
import { JobView } from "./JobView";
import { ReplayView } from "./ReplayView";
import { ResultView } from "./ResultView";

export function StreamsPart({ route }: { route: StreamRoute }) {
  switch (route.view) {
    case "streams":
      return <JobsView />;
    case "job":
      return <JobView key={route.run} run={route.run} />;
    case "result":
      return <ResultView key={route.id} id={route.id} />;
    case "replay":
      return <ReplayView key={route.id} id={route.id} />;
  }
}

export function StreamTrail({ route }: { route: StreamRoute }) {
  const ofResult = route.view === "result" || route.view === "replay";
  return (
    <nav aria-label="Where you are">
      <button
        type="button"
        className="link"
        onClick={() => go({ view: "streams" })}
        aria-current={route.view === "streams" ? "page" : undefined}
      >
        Streams
      </button>
      {route.view === "job" && (
        <>
          <span aria-hidden="true">›</span>
          <span aria-current="page">{shorten(route.run, 36)}</span>
        </>
      )}
      {ofResult && (
        <>
          <span aria-hidden="true">›</span>
          <button
            type="button"
            className="link"
            onClick={() => go({ view: "result", id: route.id })}
            aria-current={route.view === "result" ? "page" : undefined}
          >
            {shorten(`${partsOf(route.id).dataset} ${partsOf(route.id).place}`, 48)}
          </button>
        </>
      )}
      {route.view === "replay" && (
        <>
          <span aria-hidden="true">›</span>
          <span aria-current="page">Replay</span>
        </>
      )}
    </nav>
  );
}
