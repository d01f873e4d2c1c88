/**
 * A runner of the Python SDK's tests: each file of sdk/python/tests as a separate process, which gets the daemon's address from its
 * environment, and requests over a socket the actions that only its parent can do.
 */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";

export const PYTHON_SDK = resolve(import.meta.dirname, "../../../sdk/python");

export interface PythonRun {
  status: number;
  /** The output of unittest, which is all on its error stream. */
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

/** Parses the output of a run. Warnings count as complaints: an unclosed socket is reported in no other way. */
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

/** The actions that tests can request by POST, by path: each takes and returns JSON. */
type Deeds = Record<string, (input: never) => unknown>;

/** Performs the actions that a child requests. */
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
