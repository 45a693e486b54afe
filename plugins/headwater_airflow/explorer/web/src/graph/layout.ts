/** Where nodes stand: ELK arranges them in its own worker, bundles as blocks, so the page never waits for it. */
import ELK, { type ElkNode } from "elkjs/lib/elk-api";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";

import { bundle, type Link } from "./bundles";

export interface Size {
  width: number;
  height: number;
}

export interface Place {
  x: number;
  y: number;
}

export type Places = ReadonlyMap<string, Place>;

const GAP = 12;
/** A block grows to this height before it gets another column. */
const ROWS = 40;

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "RIGHT",
  "elk.layered.spacing.nodeNodeBetweenLayers": "120",
  "elk.spacing.nodeNode": "28",
  "elk.spacing.componentComponent": "60",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
};

const elk = new ELK({ workerFactory: () => new Worker(workerUrl) });

interface Wishes {
  /** The gap between layers, where edges carry labels. */
  spread?: number;
  /** What stands right below a node, and belongs to it. */
  below?: ReadonlyMap<string, readonly string[]>;
}

/** Arrange nodes of one size. */
export async function arrange(
  nodes: readonly string[],
  links: readonly Link[],
  size: Size,
  { spread, below }: Wishes = {},
): Promise<Places> {
  const bundles = bundle(nodes, links, (node) => below?.has(node) ?? false).map(({ id, members }) => ({
    id,
    members: [...members, ...(below?.get(id) ?? [])],
  }));
  const blockOf = new Map(bundles.flatMap(({ id, members }) => members.map((member) => [member, id])));
  const between = new Map<string, { id: string; sources: string[]; targets: string[] }>();
  for (const link of links) {
    const source = blockOf.get(link.source);
    const target = blockOf.get(link.target);
    if (source === undefined || target === undefined || source === target) continue;
    const id = `${source} ${target}`;
    between.set(id, { id, sources: [source], targets: [target] });
  }
  const arranged = await elk.layout({
    id: "graph",
    layoutOptions: spread ? { ...OPTIONS, "elk.layered.spacing.nodeNodeBetweenLayers": String(spread) } : OPTIONS,
    children: bundles.map(({ id, members }) => ({ id, ...blockSize(members.length, size) })),
    edges: [...between.values()],
  });
  return unpack(arranged, new Map(bundles.map(({ id, members }) => [id, members])), size);
}

function blockSize(members: number, size: Size): Size {
  const rows = Math.min(members, ROWS);
  const columns = Math.ceil(members / ROWS);
  return { width: columns * (size.width + GAP) - GAP, height: rows * (size.height + GAP) - GAP };
}

function unpack(arranged: ElkNode, members: ReadonlyMap<string, string[]>, size: Size): Places {
  const places = new Map<string, Place>();
  for (const { id, x = 0, y = 0 } of arranged.children ?? []) {
    members.get(id)?.forEach((member, at) => {
      const column = Math.floor(at / ROWS);
      places.set(member, { x: x + column * (size.width + GAP), y: y + (at % ROWS) * (size.height + GAP) });
    });
  }
  return places;
}

/** The same picture, moved so that one node stays where it was. */
export function anchored(places: Places, before: Places, anchor: string): Places {
  const was = before.get(anchor);
  const is = places.get(anchor);
  if (!was || !is) return places;
  const [dx, dy] = [was.x - is.x, was.y - is.y];
  return new Map([...places].map(([id, { x, y }]) => [id, { x: x + dx, y: y + dy }]));
}
