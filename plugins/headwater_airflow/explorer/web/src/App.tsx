/** The page: a search, a path back, and the lake or the records that were chosen. */
import { useCallback } from "react";

import { api, type Overview } from "./api";
import { LakeView } from "./components/LakeView";
import { useLoaded } from "./components/loading";
import { RecordView } from "./components/RecordView";
import { SearchBox } from "./components/SearchBox";
import { Failure, Loading } from "./components/states";
import { StreamsPart, StreamTrail } from "./components/streams/StreamsPart";
import { DAG, go, isOfStreams, useRoute, type Route } from "./route";
import { partsOf, shorten } from "./words";

export function App() {
  const route = useRoute();
  return (
    <div className="page">
      <header>
        <Parts route={route} />
        <Trail route={route} />
        <SearchBox />
      </header>
      <main>{isOfStreams(route) ? <StreamsPart route={route} /> : <LakePart route={route} />}</main>
    </div>
  );
}

/** The parts of the page; on a DAG's own there is its lineage alone. */
function Parts({ route }: { route: Route }) {
  if (DAG) return null;
  const ofStreams = isOfStreams(route);
  return (
    <nav aria-label="Parts" className="parts">
      <button type="button" className="link" aria-current={ofStreams ? undefined : "true"} onClick={() => go({ view: "lake" })}>
        Lineage
      </button>
      <button type="button" className="link" aria-current={ofStreams ? "true" : undefined} onClick={() => go({ view: "streams" })}>
        Streams
      </button>
    </nav>
  );
}

function LakePart({ route }: { route: Route }) {
  const [overview, again] = useLoaded(
    useCallback((signal: AbortSignal) => api.overview(DAG, signal), []),
    isGrowing,
  );
  if (overview.state === "loading") return <Loading what="the lake" />;
  if (overview.state === "failed") return <Failure error={overview.error} onRetry={again} />;
  return route.view === "record" ? (
    <RecordView key={route.id} id={route.id} mayPurge={overview.value.may_purge} />
  ) : (
    <LakeView overview={overview.value} dataset={route.view === "dataset" ? route.name : null} />
  );
}

function isGrowing({ feeds }: Overview): boolean {
  return feeds.some((feed) => feed.live);
}

function Trail({ route }: { route: Route }) {
  if (isOfStreams(route)) return <StreamTrail route={route} />;
  const dataset = route.view === "dataset" ? route.name : route.view === "record" ? partsOf(route.id).dataset : null;
  return (
    <nav aria-label="Where you are">
      <button type="button" className="link" onClick={() => go({ view: "lake" })} aria-current={dataset === null ? "page" : undefined}>
        {DAG ? "DAG lineage" : "Lake"}
      </button>
      {dataset !== null && (
        <>
          <span aria-hidden="true">›</span>
          <button
            type="button"
            className="link"
            onClick={() => go({ view: "dataset", name: dataset })}
            aria-current={route.view === "dataset" ? "page" : undefined}
          >
            {dataset}
          </button>
        </>
      )}
      {route.view === "record" && (
        <>
          <span aria-hidden="true">›</span>
          <span aria-current="page">{shorten(partsOf(route.id).place, 36)}</span>
        </>
      )}
    </nav>
  );
}
