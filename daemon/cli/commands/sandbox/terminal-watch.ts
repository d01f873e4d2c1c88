/**
 * `roomd terminal watch`: shows a terminal's output on this one, with harmful sequences removed. After a disconnect it resumes at the last
 * byte that was shown.
 */
import { terminalWatch } from "../../../../shared/api/terminals.ts";
import { plainJson } from "../../../core/text.ts";
import { lost } from "../../kit/cli-error.ts";
import { events } from "../../kit/client.ts";
import { print, printable, say, write } from "../../kit/output.ts";
import { withoutProgress } from "../../kit/progress.ts";
import { LocalTerminal } from "../shell/shell-local.ts";
import { AS_BEFORE, ScreenFilter } from "./screen-filter.ts";

const CTRL_C = 3;

export interface WatchedName {
  room_id: string;
  sandbox: string;
  terminal_id: string;
}

type WatchMessage = Record<string, unknown>;

/** Output target. */
interface Screen {
  take(event: WatchMessage): Promise<void>;
  /** Puts everything back. */
  close(): Promise<void>;
}

/** Resolves when the terminal has ended, or the watcher has left. */
export async function watchTerminal(name: WatchedName, json: boolean): Promise<void> {
  const left = new AbortController();
  const screen = json ? asLines() : process.stdin.isTTY && process.stdout.isTTY ? onTerminal(left) : asText();
  let end: WatchMessage | null = null;
  try {
    end = await withoutProgress(() => follow(name, screen, left.signal));
  } finally {
    await screen.close();
  }
  if (json) return;
  const how = end?.signal ? `by ${printable(String(end.signal))}` : `with exit code ${end?.exit_code}`;
  await say(end === null ? "roomd: left; the terminal keeps running" : `roomd: the terminal has ended ${how}`);
}

/** The exit event, or null if the watcher has left. */
async function follow(name: WatchedName, screen: Screen, signal: AbortSignal): Promise<WatchMessage | null> {
  try {
    for await (const event of events(terminalWatch, { ...name }, { signal })) {
      await screen.take(event);
      if (event.type === "exit") return event;
    }
    return null;
  } catch (error) {
    if (signal.aborted) return null;
    throw lost(error, "The terminal keeps running.");
  }
}

function bytesOf({ data_b64 }: WatchMessage): Uint8Array {
  return typeof data_b64 === "string" ? Uint8Array.fromBase64(data_b64) : new Uint8Array(0);
}

/** Prints events as lines of JSON as they arrive. */
function asLines(): Screen {
  return { take: (event) => print(plainJson(JSON.stringify(event))), close: async () => {} };
}

/** Writes the filtered output to a file or a pipe. */
function asText(): Screen {
  const filter = new ScreenFilter();
  return { take: (event) => write(process.stdout, filter.pass(bytesOf(event))), close: async () => {} };
}

/** Shows the output on the whole local terminal; keys can only leave the view. */
function onTerminal(left: AbortController): Screen {
  const local = new LocalTerminal();
  const filter = new ScreenFilter();
  let hasBegun = false;
  local.open(
    (typed) => typed.includes(CTRL_C) && left.abort(),
    () => {},
  );
  return {
    take: async (event) => {
      const isBehind = event.type === "lost" || (event.type === "watching" && hasBegun && event.gap !== 0);
      if (isBehind) local.note(`${event.gap} bytes were left out`);
      hasBegun = true;
      if (event.type !== "output") return;
      local.show(
        new TextEncoder().encode(filter.pass(bytesOf(event))),
        () => {},
        () => {},
      );
      await local.flush();
    },
    close: async () => {
      await write(process.stdout, AS_BEFORE);
      local.cutOff();
      local.close();
      await write(process.stdout, "\r\n");
    },
  };
}
