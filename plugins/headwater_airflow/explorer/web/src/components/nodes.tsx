/** The boxes of the graphs: a dataset, a record, and what is not loaded yet. */
import { Handle, Position, type NodeProps } from "@xyflow/react";
import { memo } from "react";

import type { Dataset, Direction, State } from "../api";
import { count, partsOf, records, shorten } from "../words";
import { useActive } from "./active";

export const DATASET_SIZE = { width: 216, height: 68 };
export const RECORD_SIZE = { width: 232, height: 50 };

/** As far from each other as ten can be told apart. */
const HUES = [212, 28, 152, 280, 340, 190, 52, 100, 245, 8];

/** A colour for each dataset, the same wherever its records are. */
export function hueOf(dataset: string): string {
  let hash = 2166136261;
  for (const letter of dataset) hash = Math.imul(hash ^ letter.charCodeAt(0), 16777619) >>> 0;
  return `hsl(${HUES[(hash >>> 12) % HUES.length]} var(--hue-saturation) var(--hue-lightness))`;
}

export const DatasetNode = memo(function DatasetNode({ id, data }: NodeProps) {
  const { dataset, selected } = data as { dataset: Dataset; selected: boolean };
  return (
    <button
      type="button"
      className={`node dataset${selected ? " selected" : ""}`}
      style={{ borderLeftColor: hueOf(id) }}
      aria-label={`Dataset ${dataset.name}, ${records(dataset)}`}
      aria-pressed={selected}
      {...useActive(id)}
    >
      <strong title={dataset.name}>{shorten(dataset.name, 26)}</strong>
      <span className="quiet">{records(dataset)}</span>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </button>
  );
});

export interface RecordData extends Record<string, unknown> {
  isStart: boolean;
  isSelected: boolean;
  isPurged: boolean;
  isBusy: boolean;
  state: State;
}

export const RecordNode = memo(function RecordNode({ id, data }: NodeProps) {
  const { isStart, isSelected, isPurged, isBusy, state } = data as RecordData;
  const { dataset, version, place } = partsOf(id);
  const classes = ["node", "record", isStart && "start", isSelected && "selected", isPurged && "purged"];
  return (
    <button
      type="button"
      className={classes.filter(Boolean).join(" ")}
      style={{ borderLeftColor: hueOf(dataset) }}
      aria-label={`Record ${id}${isPurged ? ", purged" : ""}${state === "live" ? ", live" : ""}`}
      aria-pressed={isSelected}
      aria-busy={isBusy}
      title={id}
      {...useActive(id)}
    >
      <span className="place">{shorten(place, 30)}</span>
      <span className="quiet">
        {shorten(`${dataset} · ${version}`, 36)}
        {isPurged && <em className="tag">purged</em>}
        {state === "live" && <em className="tag live">live</em>}
      </span>
    </button>
  );
});

export interface MoreData extends Record<string, unknown> {
  more: number;
  direction: Direction;
  isBusy: boolean;
}

export const MoreNode = memo(function MoreNode({ id, data }: NodeProps) {
  const { more, direction, isBusy } = data as MoreData;
  return (
    <button
      type="button"
      className="node more"
      disabled={isBusy}
      aria-busy={isBusy}
      aria-label={`And ${count(more, "more record", "more records")} ${direction}: load the next`}
      {...useActive(id)}
    >
      <span className="place">
        {direction === "backward" && "← "}and {more.toLocaleString("en")} more{direction === "forward" && " →"}
      </span>
      <span className="quiet">{isBusy ? "loading …" : "load the next"}</span>
    </button>
  );
});
