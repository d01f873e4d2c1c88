/** Frame of every page: routing, title, state of the stream, and keys. */
import { Component, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Empty, Loading } from "../components/parts.tsx";
import { signedOut } from "../data/api.ts";
import { follow } from "../data/live.ts";
import { KeyList } from "./keys.tsx";
import { Lost, useProgram } from "./lazy-page.tsx";
import { PAGES } from "./pages.ts";
import { hrefWith, place } from "./router.ts";

export function App() {
  const { path } = place.value;
  const found = PAGES.map((page) => ({ page, params: page.match(path) })).find(({ params }) => params !== null);
  const room = found?.params?.room_id ?? null;
  useEffect(() => follow(room), [room]);
  useEffect(() => showWhere(path), [path]);
  return (
    <>
      {signedOut.value ? (
        <div class="trouble" role="alert">
          <p>
            You are signed out: this page is no longer updating. {/* A full load returns here. */}
            <a href={hrefWith({})} data-load>
              Sign in
            </a>{" "}
            to continue.
          </p>
        </div>
      ) : null}
      {found?.params ? (
        <Guard key={path}>
          <Lazy load={found.page.load} params={found.params} />
        </Guard>
      ) : (
        <Empty title="There is no such page." />
      )}
      <KeyList />
    </>
  );
}

function Lazy({ load, params }: { load: (typeof PAGES)[number]["load"]; params: Record<string, string> }) {
  const { Page, isLost } = useProgram(load);
  if (isLost) return <Lost />;
  return Page ? <Page params={params} /> : <Loading rows={5} />;
}

/** Error boundary: a page that throws does not affect the rest of the application. */
class Guard extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null };

  override componentDidCatch(error: Error): void {
    console.error(error);
    this.setState({ error });
  }

  override render() {
    return this.state.error ? (
      <Empty title="Something went wrong on this page.">
        <p>
          <a href={place.value.path} data-load>
            Reload it
          </a>
          . The browser's console has details for a bug report.
        </p>
      </Empty>
    ) : (
      this.props.children
    );
  }
}

/** The daemon renders the rail; this marks the current page in it. */
function showWhere(path: string): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("body > nav a")) {
    const own = link.pathname;
    const isHere = own === path || (own !== "/" && path.startsWith(`${own}/`));
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
