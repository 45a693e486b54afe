/** All lines between the records in sight, drawn as a few shapes: a component for each would be too many. */
import { ViewportPortal } from "@xyflow/react";
import { memo, useMemo } from "react";

import { shapesOf } from "../graph/curves";
import type { Places, Size } from "../graph/layout";
import type { Line } from "./Canvas";

interface Props {
  lines: readonly Line[];
  hovered: Line | undefined;
  places: Places;
  size: Size;
}

const VERDICTS = ["complete", "unknown", "partial"] as const;

export const TieLayer = memo(function TieLayer({ lines, hovered, places, size }: Props) {
  const shapes = useMemo(
    () =>
      VERDICTS.map((verdict) => ({
        verdict,
        ...shapesOf(lines.filter((line) => line.verdict === verdict), places, size),
      })),
    [lines, places, size],
  );
  const marked = lines.filter((line) => line.selected || line === hovered);
  const mark = shapesOf(marked, places, size);
  return (
    <ViewportPortal>
      <svg className="ties" aria-hidden="true">
        {shapes.map(({ verdict, lines: curves, heads }) => (
          <g key={verdict} className={verdict}>
            <path className="curve" d={curves} />
            <path className="head" d={heads} />
          </g>
        ))}
        <g className="marked">
          <path className="curve" d={mark.lines} />
          <path className="head" d={mark.heads} />
        </g>
      </svg>
    </ViewportPortal>
  );
});
