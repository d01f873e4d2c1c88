/**
 * Router of the hub: the address as a signal, and navigation between pages without a full load. The daemon has the same list of paths
 * (edge/web/routes.ts); all other paths are loaded.
 */
import { signal } from "@preact/signals";
import { pathOf } from "../data/api.ts";

export interface RouteLocation {
  path: string;
  query: URLSearchParams;
}

const at = ({ pathname: path, searchParams: query }: URL): RouteLocation => ({ path, query });
const here = () => at(new URL(location.href));

export const place = signal<RouteLocation>(here());

const patterns: RegExp[] = [];

/** Registers a path of the hub: `/rooms/:room_id`. */
export function addPath(path: string): (requestedPath: string) => Record<string, string> | null {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, "([^/]+)")}$`);
  patterns.push(pattern);
  return (requestedPath) => {
    const found = pattern.exec(requestedPath);
    return found ? Object.fromEntries(names.map((name, n) => [name, decode(found[n + 1] ?? "")])) : null;
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const isOurs = (path: string) => patterns.some((pattern) => pattern.test(path));

export function go(to: string, { replaces = false } = {}): void {
  const url = new URL(to, location.href);
  if (url.origin !== location.origin || !isOurs(url.pathname)) {
    location.assign(url);
    return;
  }
  const isSame = url.pathname === location.pathname;
  history[replaces ? "replaceState" : "pushState"](null, "", url);
  // Not the browser's address: a browser ignores changes that are too frequent.
  place.value = at(url);
  if (isSame) return;
  scrollTo(0, 0);
  // Screen readers announce the new page, and the next tab key starts at its beginning.
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** The current address with changed query parameters; empty ones are left out. */
export function hrefWith(changes: Record<string, string | null>): string {
  const { path, query } = place.peek();
  return pathOf(path, { ...Object.fromEntries(query), ...changes });
}

export const setQuery = (changes: Record<string, string | null>): void => go(hrefWith(changes), { replaces: true });

export function listenToLinks(): void {
  addEventListener("popstate", () => {
    place.value = here();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname === location.pathname && link.hash) return;
    if (!isOurs(link.pathname) || link.dataset.load !== undefined) return;
    event.preventDefault();
    go(link.href);
  });
}
