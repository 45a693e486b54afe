/** The lake from above: which dataset feeds which, through which DIC, how often, and whether provenance is all there. */
import { useCallback, useEffect, useMemo, useState } from "react";

import type { Feed, Overview } from "../api";
import { arrange, type Places } from "../graph/layout";
import { worst } from "../graph/model";
import { DAG, go } from "../route";
import { count } from "../words";
import { Canvas, type Line } from "./Canvas";
import { DatasetPanel } from "./DatasetPanel";
import { FeedEdge } from "./FeedEdge";
import { FeedPanel } from "./FeedPanel";
import { DATASET_SIZE, DatasetNode } from "./nodes";
import { Empty, Loading } from "./states";

const NODES = { dataset: DatasetNode };
const EDGES = { feed: FeedEdge };
const SPREAD = 260;
const NOWHERE: Places = new Map();

function bySides(feeds: Feed[]): Map<string, Feed[]> {
  const sides = new Map<string, Feed[]>();
  for (const feed of feeds) {
    const key = `${feed.source} ${feed.target}`;
    sides.set(key, [...(sides.get(key) ?? []), feed]);
  }
  return sides;
}

export function LakeView({ overview, dataset }: { overview: Overview; dataset: string | null }) {
  const [places, setPlaces] = useState(NOWHERE);
  const [line, setLine] = useState<string | null>(null);
  const sides = useMemo(() => bySides(overview.feeds), [overview]);
  const named = useMemo(() => new Map(overview.datasets.map((one) => [one.name, one])), [overview]);
  useEffect(() => setLine(null), [dataset]);
  useEffect(() => {
    let gone = false;
    void arrange([...named.keys()], overview.feeds, DATASET_SIZE, { spread: SPREAD }).then((made) => gone || setPlaces(made));
    return () => {
      gone = true;
    };
  }, [named, overview]);

  const lines = useMemo<Line[]>(
    () =>
      [...sides].map(([id, feeds]) => ({
        id,
        source: feeds[0]?.source ?? "",
        target: feeds[0]?.target ?? "",
        verdict: worst(feeds.map((feed) => feed.verdict)),
        kind: "feed",
        selected: id === line,
        data: { feeds, selected: id === line, onOpen: () => setLine(id) },
      })),
    [sides, line],
  );
  const dataOf = useCallback(
    (name: string) => ({ dataset: named.get(name), selected: name === dataset && line === null }),
    [named, dataset, line],
  );
  const open = useCallback((name: string) => {
    setLine(null);
    go({ view: "dataset", name });
  }, []);
  const typeOf = useCallback(() => "dataset", []);

  if (!overview.datasets.length) {
    return DAG ? (
      <Empty title="No lineage of this DAG yet">
        None of its runs is in the lake graph. Run it to the end of its merge, then look again.
      </Empty>
    ) : (
      <Empty title="The lake graph is empty">
        Run one of Headwater's DAGs, or merge a reduced run with <code>headwater merge</code>, then look again.
      </Empty>
    );
  }
  const feeds = line === null ? undefined : sides.get(line);
  const shown = dataset === null ? undefined : named.get(dataset);
  return (
    <>
      <div className="stage">
        {places.size ? (
          <Canvas
            label="Datasets and what they feed. Arrow keys move, Enter opens."
            places={places}
            lines={lines}
            size={DATASET_SIZE}
            nodeTypes={NODES}
            edgeTypes={EDGES}
            typeOf={typeOf}
            dataOf={dataOf}
            centre={null}
            onOpen={open}
            onOpenLine={setLine}
          />
        ) : (
          <Loading what="the lake" />
        )}
      </div>
      <aside className="panel" aria-label="Details">
        {feeds ? (
          <FeedPanel feeds={feeds} />
        ) : dataset !== null ? (
          <DatasetPanel key={dataset} name={dataset} dataset={shown} mayPurge={overview.may_purge} />
        ) : (
          <Summary overview={overview} />
        )}
      </aside>
    </>
  );
}

function Summary({ overview }: { overview: Overview }) {
  const derivations = overview.feeds.reduce((sum, feed) => sum + feed.edges, 0);
  return (
    <>
      <h2>{DAG ? `What ${DAG} made` : "The lake"}</h2>
      <p>
        {count(overview.datasets.length, "dataset")}, {count(derivations, "derivation")} between records.
      </p>
      <p className="quiet">
        Choose a dataset to see its records, or a line to see what made it. A record leads to the records that it was made
        from, and to those that were made from it.
      </p>
      <ul className="rows">
        {overview.datasets.map(({ name }) => (
          <li key={name}>
            <button type="button" className="row" onClick={() => go({ view: "dataset", name })}>
              {name}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
