/** Records around the one that it begins with, expanded on demand, a page at a time. */
import { useCallback, useEffect, useMemo, useState } from "react";

import { api, type Direction, type Neighbours } from "../api";
import { anchored, arrange, type Places } from "../graph/layout";
import {
  addPage,
  begin,
  isGrowing,
  isNews,
  isOvertaken,
  nextPlace,
  shownVerdict,
  tieVerdict,
  type Shown,
} from "../graph/model";
import { count } from "../words";
import { Canvas, type Line } from "./Canvas";
import { asError, NOW_AND_THEN } from "./loading";
import { MoreNode, RECORD_SIZE, RecordNode, type MoreData, type RecordData } from "./nodes";
import { RecordPanel } from "./RecordPanel";
import { Failure, Loading, Notice } from "./states";
import { TiePanel } from "./TiePanel";
import { VerdictBadge } from "./Verdict";

const NODES = { record: RecordNode, more: MoreNode };
const FIRST_PAGE = 25;
const NEXT_PAGE = 500;
const NOWHERE: Places = new Map();

interface Wish {
  id: string;
  direction: Direction;
  depth: number;
}

/** The next page of an expansion; from the beginning again where the lake graph changed meanwhile. */
async function readPage(shown: Shown, { id, direction, depth }: Wish): Promise<{ first: number; page: Neighbours }> {
  const first = nextPlace(shown, id, direction, depth);
  const page = await api.neighbours(id, direction, depth, first, first ? NEXT_PAGE : FIRST_PAGE);
  if (!isOvertaken(shown, id, direction, first, page)) return { first, page };
  return { first: 0, page: await api.neighbours(id, direction, depth, 0, NEXT_PAGE) };
}

/** What the drawing is of: records and lines, and below a record a box for each side of it that has more. */
function drawingOf(shown: Shown) {
  const lines: Line[] = [...shown.ties].map(([id, tie]) => ({
    id,
    source: tie.input,
    target: tie.output,
    verdict: tieVerdict(shown, tie),
    kind: "tie",
    selected: false,
  }));
  const waiting = new Map<string, { wish: Wish; more: number }>();
  const below = new Map<string, string[]>();
  for (const [key, { id, direction, depth, total, loaded }] of shown.expansions) {
    if (total <= loaded) continue;
    const box = `more ${key}`;
    waiting.set(box, { wish: { id, direction, depth }, more: total - loaded });
    below.set(id, [...(below.get(id) ?? []), box]);
  }
  return { nodes: [...shown.records.keys()], lines, waiting, below };
}

interface Props {
  id: string;
  mayPurge: boolean;
}

export function RecordView({ id: start, mayPurge }: Props) {
  const [shown, setShown] = useState<Shown>(() => begin({ id: start, dataset: null, purge: null }));
  const [places, setPlaces] = useState(NOWHERE);
  const [depth, setDepth] = useState(1);
  const [selected, setSelected] = useState(start);
  const [tie, setTie] = useState<string | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [failed, setFailed] = useState<Error | null>(null);
  const [tries, setTries] = useState(0);
  const drawing = useMemo(() => drawingOf(shown), [shown]);

  // A record alone says little, so both its sides are there from the beginning.
  useEffect(() => {
    let gone = false;
    const load = async () => {
      let next = begin({ id: start, dataset: null, purge: null });
      setFailed(null);
      try {
        for (const direction of ["backward", "forward"] as const) {
          const wish = { id: start, direction, depth: 1 };
          next = addPage(next, { ...wish, first: 0 }, (await readPage(next, wish)).page);
        }
        if (!gone) setShown(next);
      } catch (failure) {
        if (!gone) setFailed(asError(failure));
      }
    };
    void load();
    return () => {
      gone = true;
    };
  }, [start, tries]);

  // Behind what is shown stands a running query: what it tells is put in now and then.
  const grows = isGrowing(shown);
  useEffect(() => {
    if (!grows || busy !== null) return;
    let gone = false;
    const look = async () => {
      if (document.hidden) return;
      for (const expansion of shown.expansions.values()) {
        const { id, direction, depth: steps, loaded } = expansion;
        if (loaded > NEXT_PAGE) continue;
        const page = await api.neighbours(id, direction, steps, 0, Math.max(FIRST_PAGE, loaded));
        if (gone) return;
        if (isNews(shown, expansion, page)) setShown((now) => addPage(now, { id, direction, depth: steps, first: 0 }, page));
      }
    };
    const timer = setInterval(() => void look().catch(() => undefined), NOW_AND_THEN);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [grows, busy, shown]);

  useEffect(() => {
    if (!shown.expansions.size) return;
    let gone = false;
    void arrange(drawing.nodes, drawing.lines, RECORD_SIZE, { below: drawing.below }).then(
      (made) => gone || setPlaces((before) => anchored(made, before, selected)),
    );
    return () => {
      gone = true;
    };
    // Not for another selection: to select alone moves nothing, and what is selected then stays where it is.
  }, [drawing]);

  const expand = useCallback(
    async (wish: Wish) => {
      if (busy !== null) return;
      setBusy(wish.id);
      setError(null);
      try {
        const { first, page } = await readPage(shown, wish);
        setShown((now) => addPage(now, { ...wish, first }, page));
      } catch (failure) {
        setError(asError(failure));
      } finally {
        setBusy(null);
      }
    },
    [busy, shown],
  );
  const open = useCallback(
    (id: string) => {
      const waits = drawing.waiting.get(id);
      if (waits) void expand(waits.wish);
      else {
        setTie(null);
        setSelected(id);
      }
    },
    [drawing, expand],
  );
  const press = useCallback(
    (id: string, key: string) => {
      const direction = key === "b" ? "backward" : key === "f" ? "forward" : null;
      if (direction && shown.records.has(id)) void expand({ id, direction, depth });
    },
    [shown, expand, depth],
  );
  const typeOf = useCallback((id: string) => (drawing.waiting.has(id) ? "more" : "record"), [drawing]);
  const dataOf = useCallback(
    (id: string): RecordData | MoreData => {
      const waits = drawing.waiting.get(id);
      if (waits) return { more: waits.more, direction: waits.wish.direction, isBusy: busy === waits.wish.id };
      return {
        isStart: id === start,
        isSelected: id === selected && tie === null,
        isPurged: Boolean(shown.records.get(id)?.purge),
        isBusy: busy === id,
        state: shown.records.get(id)?.state ?? "unknown",
      };
    },
    [drawing, start, selected, tie, busy, shown],
  );
  const lines = useMemo(
    () => (tie === null ? drawing.lines : drawing.lines.map((line) => (line.id === tie ? { ...line, selected: true } : line))),
    [drawing, tie],
  );

  if (failed) return <Failure error={failed} onRetry={() => setTries((before) => before + 1)} />;
  const chosen = tie === null ? undefined : shown.ties.get(tie);
  return (
    <>
      <div className="stage">
        {error && <Notice error={error} onClose={() => setError(null)} />}
        {places.size ? (
          <Canvas
            label="Records and what they were made from. Arrow keys move, Enter opens, B expands backward, F forward."
            places={places}
            lines={lines}
            size={RECORD_SIZE}
            nodeTypes={NODES}
            typeOf={typeOf}
            dataOf={dataOf}
            centre={start}
            onOpen={open}
            onOpenLine={(id) => shown.ties.has(id) && setTie(id)}
            onKey={press}
          />
        ) : (
          <Loading what="the record" />
        )}
        <div className="legend">
          <span role="status">
            <VerdictBadge verdict={shownVerdict(shown)} /> {count(shown.records.size, "record")}
          </span>
          <span className="quiet">inputs left, outputs right</span>
          <div className="segments" role="radiogroup" aria-label="How many steps to expand">
            {[1, 2].map((steps) => (
              <label key={steps}>
                <input type="radio" name="depth" checked={depth === steps} onChange={() => setDepth(steps)} />
                {count(steps, "step")}
              </label>
            ))}
          </div>
        </div>
      </div>
      <aside className="panel" aria-label="Details">
        {chosen ? (
          <TiePanel tie={chosen} runs={shown.runs} />
        ) : (
          <RecordPanel
            key={selected}
            id={selected}
            shown={shown}
            depth={depth}
            mayPurge={mayPurge}
            onExpand={(direction) => void expand({ id: selected, direction, depth })}
            onError={setError}
          />
        )}
      </aside>
    </>
  );
}
