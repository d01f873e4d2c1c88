/** Owns asking again and again for what is no event, while one looks. */
import { useEffect, useRef } from "preact/hooks";

/** A call that waits leaves its record only when it ends: so often it is asked who waits. Each time is on record. */
export const WAITS_MS = 5000;

/** Not while the tab is hidden, and at once when it is seen again. */
export function useEvery(isOn: boolean, ms: number, ask: () => void): void {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (!isOn) return;
    const look = () => {
      if (!document.hidden) latest.current();
    };
    const timer = setInterval(look, ms);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [isOn, ms]);
}
