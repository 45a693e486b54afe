/** The page: a search, a path back, and the lake or the records that were chosen. */
import { useCallback } from "react";

import { api, type Overview } from "./api";
import { LakeView } from "./components/LakeView";
import { useLoaded } from "./components/loading";
import { RecordView } from "./components/RecordView";
import { SearchBox } from "./components/SearchBox";
import { Failure, Loading } from "./components/states";
import { DAG, go, useRoute, type Route } from "./route";
import { partsOf, shorten } from "./words";

export function App() {
  const route = useRoute();
  const [overview, again] = useLoaded(
    useCallback((signal: AbortSignal) => api.overview(DAG, signal), []),
    isGrowing,
  );
  return (
    <div className="page">
      <header>
        <Trail route={route} />
        <SearchBox />
      </header>
      <main>
        {overview.state === "loading" && <Loading what="the lake" />}
        {overview.state === "failed" && <Failure error={overview.error} onRetry={again} />}
        {overview.state === "there" &&
          (route.view === "record" ? (
            <RecordView key={route.id} id={route.id} mayPurge={overview.value.may_purge} />
          ) : (
            <LakeView overview={overview.value} dataset={route.view === "dataset" ? route.name : null} />
          ))}
      </main>
    </div>
  );
}

function isGrowing({ feeds }: Overview): boolean {
  return feeds.some((feed) => feed.live);
}

function Trail({ route }: { route: Route }) {
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
