/** Owns what the tab is called. */
import { useEffect } from "preact/hooks";

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · roomd`;
  }, [title]);
}
