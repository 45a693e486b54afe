/** The lines between records, as curves: many of them are one shape to draw, and one question to ask of the pointer. */
import type { Place, Places, Size } from "./layout";
import type { Ends } from "./sight";

const ARROW = 7;
const SAMPLES = 16;

interface Curve {
  from: Place;
  to: Place;
  bend: number;
}

function curveOf({ source, target }: Ends, places: Places, size: Size): Curve | undefined {
  const [left, right] = [places.get(source), places.get(target)];
  if (!left || !right) return undefined;
  const from = { x: left.x + size.width, y: left.y + size.height / 2 };
  const to = { x: right.x, y: right.y + size.height / 2 };
  return { from, to, bend: Math.max(40, Math.abs(to.x - from.x) / 2) };
}

/** The shapes of lines and of their heads, for the `d` of two paths. */
export function shapesOf(links: readonly Ends[], places: Places, size: Size): { lines: string; heads: string } {
  const lines: string[] = [];
  const heads: string[] = [];
  for (const link of links) {
    const curve = curveOf(link, places, size);
    if (!curve) continue;
    const { from, to, bend } = curve;
    lines.push(`M${from.x} ${from.y}C${from.x + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x - ARROW} ${to.y}`);
    heads.push(`M${to.x} ${to.y}l${-ARROW - 2} ${-ARROW / 2}v${ARROW}z`);
  }
  return { lines: lines.join(""), heads: heads.join("") };
}

function distance(point: Place, { from, to, bend }: Curve): number {
  let nearest = Infinity;
  for (let step = 0; step <= SAMPLES; step += 1) {
    const t = step / SAMPLES;
    const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
    const x = a * from.x + b * (from.x + bend) + c * (to.x - bend) + d * to.x;
    const y = (a + b) * from.y + (c + d) * to.y;
    nearest = Math.min(nearest, Math.hypot(point.x - x, point.y - y));
  }
  return nearest;
}

/** The link whose line is nearest to a point, if any is within reach. */
export function linkAt<L extends Ends>(
  point: Place,
  reach: number,
  links: readonly L[],
  places: Places,
  size: Size,
): L | undefined {
  let found: { link: L; far: number } | undefined;
  for (const link of links) {
    const curve = curveOf(link, places, size);
    if (!curve) continue;
    const [low, high] = [Math.min(curve.from.y, curve.to.y), Math.max(curve.from.y, curve.to.y)];
    if (point.y < low - reach || point.y > high + reach) continue;
    const far = distance(point, curve);
    if (far <= reach && (!found || far < found.far)) found = { link, far };
  }
  return found?.link;
}
