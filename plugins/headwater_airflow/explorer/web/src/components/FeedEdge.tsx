/** One dataset feeds another: a line that says through which DIC, and how often. */
import { BaseEdge, EdgeLabelRenderer, getBezierPath, type EdgeProps } from "@xyflow/react";

import type { Feed } from "../api";
import { count } from "../words";
import { VerdictDot } from "./Verdict";

export interface FeedData extends Record<string, unknown> {
  feeds: Feed[];
  selected: boolean;
  onOpen: () => void;
}

export function FeedEdge(props: EdgeProps) {
  const { feeds, selected, onOpen } = props.data as FeedData;
  const [path, x, y] = getBezierPath(props);
  return (
    <>
      <BaseEdge path={path} markerEnd={props.markerEnd} interactionWidth={16} />
      <EdgeLabelRenderer>
        <button
          type="button"
          className={`feed-label nodrag nopan${selected ? " selected" : ""}`}
          style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
          aria-pressed={selected}
          onClick={onOpen}
        >
          {feeds.map((feed) => (
            <span key={feed.dic}>
              <VerdictDot verdict={feed.verdict} />
              <strong>{feed.dic}</strong>
              <span className="quiet">{count(feed.edges, "derivation")}</span>
            </span>
          ))}
        </button>
      </EdgeLabelRenderer>
    </>
  );
}
