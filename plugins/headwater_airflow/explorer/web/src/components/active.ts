/** Which node of a graph the keys are on: one alone is in the order of the Tab key, and the arrows lead to the others. */
import { createContext, use, useEffect, useRef, type RefObject } from "react";

interface Active {
  active: string | null;
  setActive: (id: string) => void;
  wantsFocus: RefObject<boolean>;
  onOpen: (id: string) => void;
}

export const ActiveNode = createContext<Active | null>(null);

/** What a node's button needs for it. */
export function useActive(id: string) {
  const told = use(ActiveNode);
  const button = useRef<HTMLButtonElement>(null);
  const isActive = told?.active === id;
  useEffect(() => {
    if (isActive && told?.wantsFocus.current) {
      told.wantsFocus.current = false;
      button.current?.focus({ preventScroll: true });
    }
  }, [isActive, told]);
  return {
    ref: button,
    tabIndex: isActive ? 0 : -1,
    onFocus: () => told?.setActive(id),
    onClick: () => told?.onOpen(id),
  };
}
