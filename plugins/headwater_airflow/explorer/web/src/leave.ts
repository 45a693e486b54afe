/** Ways out of the page into Airflow, in whose frame it stands. */
import type { MouseEvent } from "react";

/** Where Airflow begins: the page is at `<airflow>/headwater/explorer`. */
export const AIRFLOW = new URL("../", location.href);

/** An address in Airflow, from parts that are encoded here. */
export function airflowUrl(...parts: string[]): string {
  return new URL(parts.map(encodeURIComponent).join("/"), AIRFLOW).href;
}

/** Open an address in place of Airflow's page, not within the frame.
 *
 * Airflow's frame may not navigate what it stands in, nor open windows; the page around it, of the same origin, may.
 */
export function leave(address: string, inNewTab = false): void {
  const link = parent.document.createElement("a");
  link.href = address;
  if (inNewTab) link.target = "_blank";
  parent.document.body.append(link);
  link.click();
  link.remove();
}

/** For a link's `onClick`: follow it out of the frame. */
export function leaving(event: MouseEvent<HTMLAnchorElement>): void {
  event.preventDefault();
  leave(event.currentTarget.href, event.ctrlKey || event.metaKey);
}
