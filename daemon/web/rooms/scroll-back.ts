/** Restores the scroll position of a page that was left by a link, once its content is loaded. The position is in the browser's history. */
import { useEffect, useLayoutEffect } from "preact/hooks";

export function useScrollBack(isThere: boolean): void {
  useEffect(() => {
    const keep = ({ target }: MouseEvent) => {
      if ((target as Element).closest("a")) history.replaceState(scrollY, "");
    };
    // Before the router's handler.
    addEventListener("click", keep, true);
    return () => removeEventListener("click", keep, true);
  }, []);
  useLayoutEffect(() => {
    const px: unknown = history.state;
    if (!isThere || typeof px !== "number") return;
    history.replaceState(null, "");
    scrollTo(0, px);
  }, [isThere]);
}
