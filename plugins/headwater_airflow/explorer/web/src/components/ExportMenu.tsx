/** The whole answer from a record as a file, in a format of W3C PROV, as a graph or as a picture. */
import { useEffect, useRef, useState } from "react";

import { api, type Direction, type ExportFormat } from "../api";
import { asError } from "./loading";

const FORMATS: [ExportFormat, string, string][] = [
  ["prov-json", "PROV-JSON", "prov.json"],
  ["prov-n", "PROV-N", "provn"],
  ["dot", "Graphviz DOT", "dot"],
  ["svg", "Picture (SVG)", "svg"],
  ["json", "JSON", "json"],
];

function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

interface Props {
  id: string;
  onError: (error: Error) => void;
}

export function ExportMenu({ id, onError }: Props) {
  const [busy, setBusy] = useState(false);
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const escaped = event instanceof KeyboardEvent && event.key === "Escape";
      const elsewhere = event instanceof MouseEvent && !menu.current?.contains(event.target as Node);
      if (menu.current && (escaped || elsewhere)) menu.current.open = false;
    };
    addEventListener("keydown", close);
    addEventListener("mousedown", close);
    return () => {
      removeEventListener("keydown", close);
      removeEventListener("mousedown", close);
    };
  }, []);

  const write = async (direction: Direction, format: ExportFormat, ending: string) => {
    if (menu.current) menu.current.open = false;
    setBusy(true);
    try {
      save(await api.export({ id, direction, format }), `${direction}.${ending}`);
    } catch (error) {
      onError(asError(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <details className="menu" ref={menu}>
      <summary className="button" aria-busy={busy}>
        {busy ? "Exporting …" : "Export"}
      </summary>
      <div className="choices">
        {(["backward", "forward"] as const).map((direction) => (
          <fieldset key={direction}>
            <legend>{direction === "backward" ? "All that it was made from" : "All that was made from it"}</legend>
            {FORMATS.map(([format, name, ending]) => (
              <button key={format} type="button" className="row" onClick={() => void write(direction, format, ending)}>
                {name}
              </button>
            ))}
          </fieldset>
        ))}
      </div>
    </details>
  );
}
