/** Readers of the hub: programs with a real browser that view its pages, and request the actions that are to happen meanwhile. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { expect } from "vitest";
import { realNode } from "../clients/real-terminal.ts";
import type { Json, TestDaemon } from "../daemon.ts";
import { Visitor } from "./visitor.ts";

export const CHROMIUM = "/usr/bin/chromium";
/** Whether there is a browser to look with. */
export const hasBrowser = existsSync(CHROMIUM);

export type Does = Record<string, () => Promise<unknown>>;

/** Runs a reader; `does` are the actions that it can request, and their results are returned to it. Returns the reader's observations. */
export async function seenBy(reader: string, daemon: TestDaemon, input: object, does: Does): Promise<Json> {
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const path = join(import.meta.dirname, reader);
  const about = JSON.stringify({ cookies: [...owner.cookies], ...input });
  const argv = [realNode(), path, CHROMIUM, daemon.url, pictures, about];
  const child = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const errors = child.stderr.text();
  const printed: string[] = [];
  try {
    for await (const line of createInterface({ input: Readable.fromWeb(child.stdout as never) })) {
      printed.push(line);
      if (!does[line]) continue;
      const result = await does[line]();
      child.stdin.write(`${JSON.stringify(typeof result === "string" ? result : null)}\n`);
      child.stdin.flush();
    }
  } catch (error) {
    child.kill();
    throw error;
  }
  expect([await child.exited, await errors]).toEqual([0, ""]);
  console.log(`pictures of ${reader}: ${pictures}`);
  return JSON.parse(printed.at(-1) ?? "");
}
