/** A graph that is moved, zoomed and walked through by keys; of a large one, only what is in sight is drawn. */
import {
  Background,
  BackgroundVariant,
  ControlButton,
  Controls,
  MarkerType,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  type Edge as FlowEdge,
  type EdgeTypes,
  type Node as FlowNode,
  type NodeHandle,
  type NodeTypes,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";

import type { Verdict } from "../api";
import { linkAt } from "../graph/curves";
import type { Places, Size } from "../graph/layout";
import { inSight, nextTowards, useByFrames } from "../graph/sight";
import { ActiveNode } from "./active";
import { TieLayer } from "./TieLayer";

export interface Line {
  id: string;
  source: string;
  target: string;
  verdict: Verdict;
  kind: "tie" | "feed";
  selected: boolean;
  data?: Record<string, unknown>;
}

interface Props {
  label: string;
  places: Places;
  lines: readonly Line[];
  size: Size;
  nodeTypes: NodeTypes;
  edgeTypes?: EdgeTypes;
  typeOf: (id: string) => string;
  dataOf: (id: string) => Record<string, unknown>;
  /** Where to look first, where the graph is too large to be seen whole. */
  centre: string | null;
  onOpen: (id: string) => void;
  onOpenLine: (id: string) => void;
  onKey?: (id: string, key: string) => void;
}

const MIN_ZOOM = 0.4;
/** So near to a line, in pixels, the pointer is on it. */
const REACH = 9;
const QUANTUM = 40;
const ARROWS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);
const MOTION = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250;

function handlesOf({ width, height }: Size): NodeHandle[] {
  const at = { y: height / 2, width: 1, height: 1 };
  return [
    { type: "target", position: Position.Left, x: 0, ...at },
    { type: "source", position: Position.Right, x: width, ...at },
  ];
}

/** What is looked at, in steps, so that not every pixel of a movement is a new question. */
function useView() {
  const key = useStore(({ transform: [x, y, zoom], width, height }) =>
    [Math.round(x / QUANTUM), Math.round(y / QUANTUM), zoom.toFixed(2), width, height].join(" "),
  );
  return useMemo(() => {
    const [x = 0, y = 0, zoom = 1, width = 0, height = 0] = key.split(" ").map(Number);
    return { x: x * QUANTUM, y: y * QUANTUM, zoom: zoom || 1, width, height };
  }, [key]);
}

function Drawing(props: Props) {
  const { places, lines, size, typeOf, dataOf, centre, onOpen, onOpenLine, onKey } = props;
  const flow = useReactFlow();
  const view = useView();
  const [active, setActive] = useState<string | null>(null);
  const wantsFocus = useRef(false);
  const sight = useMemo(() => inSight(places, lines, size, view), [places, lines, size, view]);
  const drawn = useByFrames(sight.nodes);
  const handles = useMemo(() => handlesOf(size), [size]);

  // A box that is as it was is the same object, so that it is not drawn again with every new neighbour.
  const kept = useRef<ReadonlyMap<string, FlowNode>>(new Map());
  const nodes = useMemo<FlowNode[]>(() => {
    const next = new Map<string, FlowNode>();
    for (const id of drawn) {
      const position = places.get(id);
      if (!position) continue;
      const node = { id, type: typeOf(id), position, data: dataOf(id), ...size, measured: size, handles };
      const before = kept.current.get(id);
      next.set(id, before && isSame(before, node) ? before : node);
    }
    kept.current = next;
    return [...next.values()];
  }, [drawn, places, typeOf, dataOf, size, handles]);
  const edges = useMemo<FlowEdge[]>(
    () => sight.links.filter((line) => line.kind === "feed" && drawn.has(line.source) && drawn.has(line.target)).map(asEdge),
    [sight, drawn],
  );
  const ties = useMemo(() => sight.links.filter((line) => line.kind === "tie"), [sight]);
  const [hovered, setHovered] = useState<Line>();
  const tieAt = ({ clientX, clientY }: MouseEvent) => {
    const point = flow.screenToFlowPosition({ x: clientX, y: clientY });
    return linkAt(point, REACH / flow.getZoom(), ties, places, size);
  };

  const first = places.size ? (centre ?? places.keys().next().value ?? null) : null;
  const fit = useCallback(
    (duration: number) => {
      const all = [...places.values()];
      if (!all.length) return;
      const left = Math.min(...all.map(({ x }) => x));
      const top = Math.min(...all.map(({ y }) => y));
      const width = Math.max(...all.map(({ x }) => x)) + size.width - left;
      const height = Math.max(...all.map(({ y }) => y)) + size.height - top;
      const zoom = Math.min(view.width / (width + 80), view.height / (height + 80), 1);
      const at = first === null ? undefined : places.get(first);
      if (zoom >= MIN_ZOOM || !at) void flow.setCenter(left + width / 2, top + height / 2, { zoom, duration });
      else void flow.setCenter(at.x + size.width / 2, at.y + size.height / 2, { zoom: 0.7, duration });
    },
    [places, size, view.width, view.height, first, flow],
  );

  // Once for each graph: what is expanded later stays where the eye is.
  const fitted = useRef<string | null>(null);
  useEffect(() => {
    if (first === null || !view.width || fitted.current === first) return;
    fitted.current = first;
    setActive(first);
    fit(0);
  }, [first, view.width, fit]);

  const walk = (event: KeyboardEvent) => {
    if (active === null || !(event.target as Element).closest(".react-flow__node")) return;
    if (ARROWS.has(event.key)) {
      event.preventDefault();
      const next = nextTowards(places, active, event.key);
      const place = next === undefined ? undefined : places.get(next);
      if (next === undefined || !place) return;
      wantsFocus.current = true;
      setActive(next);
      const zoom = flow.getZoom();
      void flow.setCenter(place.x + size.width / 2, place.y + size.height / 2, { zoom, duration: MOTION });
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey) {
      onKey?.(active, event.key);
    }
  };

  const told = useMemo(() => ({ active, setActive, wantsFocus, onOpen }), [active, onOpen]);
  return (
    <ActiveNode value={told}>
      <div className="canvas" role="application" aria-label={props.label} onKeyDown={walk}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={props.nodeTypes}
          edgeTypes={props.edgeTypes}
          minZoom={MIN_ZOOM}
          maxZoom={1.6}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          deleteKeyCode={null}
          className={hovered && "on-line"}
          onEdgeClick={(_, edge) => onOpenLine(edge.id)}
          onPaneClick={(event) => {
            const line = tieAt(event);
            if (line) onOpenLine(line.id);
          }}
          onPaneMouseMove={(event) => setHovered(tieAt(event))}
          onPaneMouseLeave={() => setHovered(undefined)}
          proOptions={{ hideAttribution: true }}
        >
          <TieLayer lines={ties} hovered={hovered} places={places} size={size} />
          <Background variant={BackgroundVariant.Dots} gap={22} size={1} />
          <Controls showInteractive={false} showFitView={false} position="bottom-left">
            <ControlButton onClick={() => fit(MOTION)} title="Fit" aria-label="Show the whole graph">
              <svg viewBox="0 0 24 24" aria-hidden="true">
                <path d="M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5" fill="none" stroke="currentColor" strokeWidth="2.4" />
              </svg>
            </ControlButton>
          </Controls>
        </ReactFlow>
      </div>
    </ActiveNode>
  );
}

function isSame(before: FlowNode, now: FlowNode): boolean {
  const isPlaced = before.position.x === now.position.x && before.position.y === now.position.y;
  return (
    isPlaced && before.type === now.type && Object.entries(now.data).every(([name, value]) => before.data[name] === value)
  );
}

const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "" };

function asEdge({ id, source, target, verdict, selected, data }: Line): FlowEdge {
  const className = `feed ${verdict}${selected ? " selected" : ""}`;
  return { id, source, target, type: "feed", className, data, markerEnd: ARROW };
}

export function Canvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Drawing {...props} />
    </ReactFlowProvider>
  );
}
