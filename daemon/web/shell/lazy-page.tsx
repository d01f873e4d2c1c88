/** Lazy modules of pages: each is loaded when its page is first opened, and no longer available once the service has another version. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Empty } from "../components/parts.tsx";
import { liveState } from "../data/live.ts";
import { hrefWith } from "./router.ts";

export type Load<Props> = () => Promise<{ default: FunctionComponent<Props> }>;

interface Program<Props> {
  load: Load<Props> | undefined;
  Page: FunctionComponent<Props> | null;
  isLost: boolean;
}

/** `Page` is null until it is loaded. */
export function useProgram<Props>(load: Load<Props> | undefined): Omit<Program<Props>, "load"> {
  const [program, set] = useState<Program<Props>>({ load, Page: null, isLost: false });
  useEffect(() => {
    let isOver = false;
    load?.().then(
      ({ default: Page }) => {
        if (!isOver) set({ load, Page, isLost: false });
      },
      () => {
        if (!isOver) set({ load, Page: null, isLost: true });
      },
    );
    return () => {
      isOver = true;
    };
  }, [load]);
  return program.load === load ? program : { Page: null, isLost: false };
}

/** Reloads the browser page once the unresponsive service is back. */
export function Lost() {
  useEffect(() => {
    let before = liveState.peek();
    return liveState.subscribe((state) => {
      if (state === "live" && before !== "live") location.reload();
      before = state;
    });
  }, []);
  return (
    <Empty title="This page's program could not be loaded.">
      <p>
        The service was restarted with another version, or does not answer.{" "}
        <a href={hrefWith({})} data-load>
          Reload the page
        </a>
        .
      </p>
    </Empty>
  );
}
