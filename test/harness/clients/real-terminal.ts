/** A real terminal in which tests run a program as a person does: keys, size, and the screen's content. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { until } from "../guests.ts";

const DRIVER = join(import.meta.dirname, "../browser/terminal-driver.mjs");

/** `bun --bun`, which runs the tests, puts a `node` that is Bun first in PATH; node-pty does not work in that one. */
export function realNode(): string {
  const folders = (process.env.PATH ?? "").split(":").filter((folder) => !basename(folder).startsWith("bun-node"));
  const found = folders.map((folder) => join(folder, "node")).find((file) => existsSync(file));
  if (found === undefined) throw new Error("there is no node in PATH: run packaging/install-host --tests");
  return found;
}

interface Told {
  shown?: string;
  exit_code?: number;
  signal?: number;
}

export class RealTerminal {
  readonly #driver: ChildProcess;
  readonly #chunks: Buffer[] = [];
  readonly ended: Promise<{ exit_code: number; signal: number }>;

  constructor(argv: readonly string[], env: Record<string, string>, size = { cols: 80, rows: 24 }) {
    const words = [DRIVER, String(size.cols), String(size.rows), ...argv];
    this.#driver = spawn(realNode(), words, { env, stdio: ["pipe", "pipe", "inherit"] });
    const ended = Promise.withResolvers<{ exit_code: number; signal: number }>();
    this.ended = ended.promise;
    const lines = createInterface({ input: this.#driver.stdout as NonNullable<ChildProcess["stdout"]> });
    lines.on("line", (line) => {
      const { shown, exit_code, signal } = JSON.parse(line) as Told;
      if (shown !== undefined) this.#chunks.push(Buffer.from(shown, "base64"));
      if (exit_code !== undefined) ended.resolve({ exit_code, signal: signal ?? 0 });
    });
    lines.on("close", () => ended.reject(new Error(`the driver has ended; it showed ${this.text.slice(-500)}`)));
    this.ended.catch(() => {});
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  /** Position after all output so far. */
  get mark(): number {
    return this.text.length;
  }

  type(keys: string): void {
    this.#tell({ keys: Buffer.from(keys).toString("base64") });
  }

  resize(rows: number, cols: number): void {
    this.#tell({ rows, cols });
  }

  /** Sends a signal to the program itself. */
  signal(signal: NodeJS.Signals): void {
    this.#tell({ signal });
  }

  /** Waits until this is shown, after `from`. */
  async shows(expected: string | RegExp, from = 0, deadlineMs = 30_000): Promise<void> {
    const isThere = () => {
      const text = this.text.slice(from);
      return typeof expected === "string" ? text.includes(expected) : expected.test(text);
    };
    await until(`the screen shows ${expected}`, isThere, deadlineMs).catch((error: Error) => {
      throw new Error(`${error.message}; it shows ${JSON.stringify(this.text.slice(from).slice(-800))}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#driver.stdin?.end();
    await this.ended.catch(() => {});
  }

  #tell(order: object): void {
    this.#driver.stdin?.write(`${JSON.stringify(order)}\n`);
  }
}
