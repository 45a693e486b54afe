/** The part of the lake graph that is on the page: records, what ties them, and how far each was expanded. */
import type { CrossedRun, Direction, ListedRecord, Neighbours, Verdict } from "../api";

export interface Tie {
  output: string;
  input: string;
  runs: string[];
}

export interface Expansion {
  id: string;
  direction: Direction;
  depth: number;
  total: number;
  loaded: number;
  verdict: Verdict;
  moment: string;
}

export interface Shown {
  start: string;
  records: ReadonlyMap<string, ListedRecord>;
  ties: ReadonlyMap<string, Tie>;
  runs: ReadonlyMap<string, CrossedRun>;
  expansions: ReadonlyMap<string, Expansion>;
}

const ORDER: Verdict[] = ["complete", "unknown", "partial"];

export function worst(verdicts: Iterable<Verdict>): Verdict {
  let found = 0;
  for (const verdict of verdicts) found = Math.max(found, ORDER.indexOf(verdict));
  return ORDER[found] ?? "unknown";
}

export function expansionKey(id: string, direction: Direction): string {
  return `${direction} ${id}`;
}

export function begin(start: ListedRecord): Shown {
  return {
    start: start.id,
    records: new Map([[start.id, start]]),
    ties: new Map(),
    runs: new Map(),
    expansions: new Map(),
  };
}

/** Where the next page of an expansion begins; it begins again where another depth is asked for. */
export function nextPlace(shown: Shown, id: string, direction: Direction, depth: number): number {
  const before = shown.expansions.get(expansionKey(id, direction));
  return before && before.depth === depth ? before.loaded : 0;
}

/** Put a page in. Records are kept under their ids, so what two expansions reach is there once, as it was told last. */
export function addPage(
  shown: Shown,
  { id, direction, depth, first }: { id: string; direction: Direction; depth: number; first: number },
  page: Neighbours,
): Shown {
  const records = new Map(shown.records);
  for (const record of page.records) records.set(record.id, record);
  const own = records.get(id);
  if (own) records.set(id, { ...own, state: page.state });
  const ties = new Map(shown.ties);
  for (const { output, input, run } of page.edges) {
    const key = `${output} ${input}`;
    const runs = ties.get(key)?.runs ?? [];
    if (!runs.includes(run)) ties.set(key, { output, input, runs: [...runs, run] });
  }
  const runs = new Map(shown.runs);
  for (const run of page.runs) runs.set(run.run, run);
  const expansions = new Map(shown.expansions);
  expansions.set(expansionKey(id, direction), {
    id,
    direction,
    depth,
    total: page.total,
    loaded: first + page.records.length,
    verdict: page.verdict,
    moment: page.moment,
  });
  return { ...shown, records, ties, runs, expansions };
}

/** Whether an expansion has pages of another moment: the lake graph changed, and places mean other records now. */
export function isOvertaken(shown: Shown, id: string, direction: Direction, first: number, page: Neighbours): boolean {
  const before = shown.expansions.get(expansionKey(id, direction));
  return first > 0 && before !== undefined && before.moment !== page.moment;
}

/** Whether a running stream query stands behind what is shown, so that it may grow. */
export function isGrowing(shown: Shown): boolean {
  return [...shown.runs.values()].some((run) => run.live);
}

/** Whether a page that was read again from its beginning tells anything new. */
export function isNews(shown: Shown, expansion: Expansion, page: Neighbours): boolean {
  const known = (id: string) => shown.records.get(id)?.state;
  return (
    expansion.moment !== page.moment ||
    known(expansion.id) !== page.state ||
    page.records.some((record) => known(record.id) !== record.state)
  );
}

export function tieVerdict(shown: Shown, tie: Tie): Verdict {
  return worst(tie.runs.map((run) => shown.runs.get(run)?.verdict ?? "unknown"));
}

export function shownVerdict(shown: Shown): Verdict {
  return worst([...shown.expansions.values()].map((expansion) => expansion.verdict));
}
