/** Something that is read from the server: there, on its way, or failed. */
import { useCallback, useEffect, useState } from "react";

export type Loaded<T> = { state: "loading" } | { state: "there"; value: T } | { state: "failed"; error: Error };

const LOADING = { state: "loading" } as const;

/** Read again whenever `read` is another function; `again` reads after a failure. */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>): [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>(LOADING);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    setLoaded(LOADING);
    read(gone.signal).then(
      (value) => gone.signal.aborted || setLoaded({ state: "there", value }),
      (error: unknown) => gone.signal.aborted || setLoaded({ state: "failed", error: asError(error) }),
    );
    return () => gone.abort();
  }, [read, tries]);
  return [loaded, useCallback(() => setTries((before) => before + 1), [])];
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
