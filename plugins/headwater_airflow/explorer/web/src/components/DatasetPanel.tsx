/** A dataset's records, by pages and by the beginning of what follows its name in their ids. */
import { useCallback, useEffect, useState } from "react";

import { api, type Dataset, type ListedRecord } from "../api";
import { go } from "../route";
import { partsOf, records as recordsOf, shorten } from "../words";
import { asError } from "./loading";
import { hueOf } from "./nodes";
import { PurgeDialog } from "./PurgeDialog";
import { Loading, Notice } from "./states";

const PAGE = 50;
const PAUSE = 200;

interface Props {
  name: string;
  dataset: Dataset | undefined;
  mayPurge: boolean;
}

export function DatasetPanel({ name, dataset, mayPurge }: Props) {
  const [text, setText] = useState("");
  const [listed, setListed] = useState<ListedRecord[] | null>(null);
  const [more, setMore] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [purging, setPurging] = useState(false);

  const load = useCallback(
    async (after: string | undefined, signal?: AbortSignal) => {
      try {
        const found = await api.search({ dataset: name, text, after, limit: PAGE }, signal);
        setListed((before) => [...(after === undefined ? [] : (before ?? [])), ...found.records]);
        setMore(found.more);
        setError(null);
      } catch (failure) {
        if (!signal?.aborted) setError(asError(failure));
      }
    },
    [name, text],
  );
  useEffect(() => {
    const gone = new AbortController();
    const timer = setTimeout(() => void load(undefined, gone.signal), text ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [load, text]);

  return (
    <>
      <h2>
        <i className="swatch" style={{ background: hueOf(name) }} /> {name}
      </h2>
      <p className="quiet">{dataset ? recordsOf(dataset) : "feeds nothing, and nothing feeds it"}</p>
      <input
        type="search"
        className="field"
        aria-label={`Records of ${name} that begin with`}
        placeholder="version/file#position"
        value={text}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
      />
      {error && <Notice error={error} onClose={() => setError(null)} />}
      {listed === null && !error && <Loading what="records" />}
      {listed?.length === 0 && <p className="quiet">No record begins like this.</p>}
      <ul className="rows" aria-label={`Records of ${name}`}>
        {listed?.map(({ id, purge }) => {
          const { version, place } = partsOf(id);
          return (
            <li key={id}>
              <button type="button" className="row" title={id} onClick={() => go({ view: "record", id })}>
                <span className="place">{shorten(place, 34)}</span>
                <span className="quiet">
                  {shorten(version, 34)} {purge && <em className="tag">purged</em>}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      {more && (
        <button type="button" className="button" onClick={() => void load(listed?.at(-1)?.id)}>
          Show more records
        </button>
      )}
      {mayPurge && (
        <button type="button" className="button danger" onClick={() => setPurging(true)}>
          Plan a purge from here …
        </button>
      )}
      {purging && <PurgeDialog from={{ dataset: name }} onClose={() => setPurging(false)} />}
    </>
  );
}
