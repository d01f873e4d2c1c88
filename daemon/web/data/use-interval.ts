/** Polls data without events while the page is visible. */
import { useEffect, useRef } from "preact/hooks";

/** Poll interval for waits: a waiting call leaves its record only when it ends. Each poll is in the audit log. */
export const WAITS_MS = 5000;

/** Paused while the tab is hidden, and run immediately when it is visible again. */
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
