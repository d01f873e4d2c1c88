/** Owns the way back to where one was on a page when one left it by a link, once what is on it is there. The browser's history keeps it. */
import { useEffect, useLayoutEffect } from "preact/hooks";

export function useScrollBack(isThere: boolean): void {
  useEffect(() => {
    const keep = ({ target }: MouseEvent) => {
      if ((target as Element).closest("a")) history.replaceState(scrollY, "");
    };
    // Before the router hears of it.
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
