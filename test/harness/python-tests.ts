/**
 * Owns running the Python SDK's tests: each file of sdk/python/tests as a process of its own, which is told by its environment where the
 * daemon is, and asks over a socket for what only its parent can do.
 */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";

export const PYTHON_SDK = resolve(import.meta.dirname, "../../sdk/python");

export interface PythonRun {
  status: number;
  /** What unittest says, which is all on its error stream. */
  output: string;
  /** How many tests it has run. */
  tests: number;
  /** Warnings, and tests that were left out: lines of its output that should not be there. */
  complaints: string[];
}

/** All but those that need guests (`test_…commands.py`), each by its name without `.py`. */
export const FILES = readdirSync(join(PYTHON_SDK, "tests"))
  .filter((name) => name.startsWith("test_") && !name.endsWith("commands.py"))
  .map((name) => name.replace(".py", ""));

/** What a run has printed, told. Warnings are: of a socket that was not closed there is no other word. */
export function toldBy(output: string): Pick<PythonRun, "tests" | "complaints"> {
  const tests = Number(/^Ran (\d+) tests? /m.exec(output)?.[1] ?? 0);
  const complaints = output.split("\n").filter((line) => /Warning|Exception ignored|skipped/.test(line));
  return { tests, complaints };
}

export const unittestOf = (name: string) => ["-X", "dev", "-m", "unittest", "-v", `tests.${name}`];

/** Runs one file of tests by its name without `.py`. */
export async function runPython(name: string, env: Record<string, string>): Promise<PythonRun> {
  const child = spawn("python3", unittestOf(name), {
    cwd: PYTHON_SDK,
    env: { PATH: process.env.PATH ?? "", PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part: Buffer) => {
      output += part.toString();
    });
  }
  const status = await new Promise<number>((done) => child.once("close", (code) => done(code ?? -1)));
  return { status, output, ...toldBy(output) };
}

/** What the tests can ask for by POST, by its path: each takes and returns JSON. */
type Deeds = Record<string, (wanted: never) => unknown>;

/** Does for a child what it asks for. */
export class Doer {
  readonly #server: Server;

  constructor(deeds: Deeds) {
    this.#server = createServer(async (request, response) => {
      try {
        const parts = await Array.fromAsync(request as AsyncIterable<Buffer>);
        const deed = deeds[request.url?.slice(1) ?? ""];
        const done = await deed?.(JSON.parse(Buffer.concat(parts).toString() || "null") as never);
        response.writeHead(deed ? 200 : 404, { "Content-Type": "application/json" }).end(JSON.stringify(done ?? null));
      } catch (error) {
        response.writeHead(500).end(String(error));
      }
    });
  }

  async listen(address = "127.0.0.1"): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, address, listening));
    return `http://${address}:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
