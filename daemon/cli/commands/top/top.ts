/** `roomd top`: current use of sandboxes, live on a terminal, or once. One request each time, however many sandboxes there are. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { type Top, topGet } from "../../../../shared/api/overview/top.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { type JsonOption, say, showValue } from "../../kit/output.ts";
import { withoutProgress, withProgress } from "../../kit/progress.ts";
import { milliseconds } from "../../kit/values.ts";
import { LocalTerminal } from "../shell/shell-local.ts";
import { SORTS, type Sort } from "./top-columns.ts";
import { pressed } from "./top-keys.ts";
import { ratesOf, type TopRates } from "./top-rates.ts";
import { pageOf, screenOf, type TopView } from "./top-screen.ts";

const DEFAULT_INTERVAL_MS = 1000;
const LEAST_INTERVAL_MS = 250;
/** Deadline of an answer; a later one is skipped. */
const PATIENCE_MS = 3000;
const NO_ANSWER = "The service does not answer; retrying.";
const NO_KEY = "Set ROOMD_API_KEY to see the sandboxes of its organization.";

const SCREEN = { on: "\x1b[?1049h\x1b[?25l", off: "\x1b[?25h\x1b[?1049l" };
const HOME = "\x1b[H";
const REST_OF_LINE = "\x1b[K";
const REST_OF_SCREEN = "\x1b[J";

interface TopOptions extends JsonOption {
  room?: string;
  interval?: number;
  sort?: Sort;
  once?: boolean;
}

export function topCommand(): Command {
  return command("top", {
    summary: "live usage of sandboxes: processor, memory, disk and network",
    notes: [
      "CPU% is of one processor: a sandbox with two vCPUs can use 200. MEMORY is its share of the host's memory, and its size. DISK is its own disk.",
      "loop is the load of the service's event loop, by organization; its longest piece is of the last minute.",
      "The host is shown with a key that has org:admin, and on the host itself also without a key.",
      "Keys: q quits; c, m, d, n and a sort by CPU, memory, disk, network and agent; arrows, j, k, space, g and G scroll; / filters.",
      "With --once or --json, or if the output is not a terminal, it is printed once, after one interval.",
    ],
    examples: ["roomd top", "roomd top --once --room build-42 --sort memory", "roomd top --json --interval 5s"],
  })
    .option("--room <room>", "only the sandboxes of this room")
    .option("--interval <time>", "refresh interval (default: 1s)", milliseconds)
    .addOption(choice("--sort <by>", "the largest first (default: cpu)", SORTS))
    .option("--once", "print it once, on a terminal too")
    .action(async ({ room, interval = DEFAULT_INTERVAL_MS, sort = "cpu", once, json }: TopOptions) => {
      const look = async () => (await call(topGet, { room_id: room })).value;
      const everyMs = Math.max(interval, LEAST_INTERVAL_MS);
      if (!json && !once && process.stdout.isTTY && process.stdin.isTTY) {
        await withoutProgress(() => new LiveTop(look, everyMs, sort).run());
        return;
      }
      const rates = await withProgress("measuring", () => lookTwice(look, everyMs));
      await showValue(toJson(rates), { json }, () => pageOf(rates, sort));
      if (!json && !hasKey()) await say(NO_KEY);
    });
}

async function lookTwice(look: () => Promise<Top>, everyMs: number): Promise<TopRates> {
  const before = await look();
  await sleep(everyMs);
  return ratesOf(before, await look());
}

/** The API's answer, with rates added to its counters. */
function toJson({ items, host, ...rest }: TopRates): object {
  return {
    ...rest,
    items: items.map(({ rates, ...item }) => ({ ...item, ...rates })),
    host: host && withRates(host),
  };
}

function withRates({ rates, ...host }: NonNullable<TopRates["host"]>): object {
  return { ...host, ...rates };
}

const hasKey = () => Boolean(process.env.ROOMD_API_KEY?.trim());

class LiveTop {
  readonly #look: () => Promise<Top>;
  readonly #everyMs: number;
  readonly #terminal = new LocalTerminal();
  readonly #view: TopView;
  readonly #over = Promise.withResolvers<void>();
  #before: Top | null = null;
  #isOver = false;

  constructor(look: () => Promise<Top>, everyMs: number, sort: Sort) {
    this.#look = look;
    this.#everyMs = everyMs;
    this.#view = { rates: null, sort, scroll: 0, filter: "", isTyping: false, notice: null };
  }

  /** Resolves when the user quits. Throws permanent errors; the terminal is then restored. */
  async run(): Promise<void> {
    this.#terminal.open(
      (typed) => this.#type(Buffer.from(typed).toString()),
      () => this.#draw(),
    );
    this.#show(SCREEN.on);
    try {
      this.#draw();
      await Promise.race([this.#over.promise, this.#follow()]);
    } finally {
      this.#isOver = true;
      this.#show(SCREEN.off);
      await this.#terminal.flush();
      this.#terminal.close();
    }
  }

  async #follow(): Promise<void> {
    while (!this.#isOver) {
      const startedAt = performance.now();
      await this.#refresh();
      this.#draw();
      await sleep(Math.max(this.#everyMs - (performance.now() - startedAt), LEAST_INTERVAL_MS));
    }
  }

  async #refresh(): Promise<void> {
    const late = setTimeout(() => this.#say(NO_ANSWER), PATIENCE_MS);
    try {
      const now = await this.#look();
      this.#view.rates = ratesOf(this.#before, now);
      this.#view.notice = hasKey() ? null : NO_KEY;
      this.#before = now;
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#view.notice = NO_ANSWER;
    } finally {
      clearTimeout(late);
    }
  }

  #say(notice: string): void {
    this.#view.notice = notice;
    this.#draw();
  }

  #type(typed: string): void {
    if (pressed(this.#view, typed, this.#terminal.size)) this.#draw();
    else this.#over.resolve();
  }

  #draw(): void {
    if (this.#isOver) return;
    const { rows, cols } = this.#terminal.size;
    const lines = screenOf(this.#view, rows, cols).map((line) => line + REST_OF_LINE);
    this.#show(HOME + lines.join("\r\n") + REST_OF_SCREEN);
  }

  #show(text: string): void {
    this.#terminal.show(Buffer.from(text), noWait, noWait);
  }
}

/** Ignores back-pressure: a slow terminal gets the next picture instead. */
const noWait = () => {};

/** Whether the service did not answer, or answered with a retryable error. */
function isPassing(error: unknown): boolean {
  return error instanceof CliError && (error.unreachable || error.complaint.retryable === true);
}
