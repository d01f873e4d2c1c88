/** The official MCP inspector's command line for tests: one method of a service, over HTTP or over the CLI's stdio. */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { BINARY, type Json, type TestDaemon } from "../daemon.ts";
import type { Way } from "./mcp-client.ts";

const INSPECTOR = resolve("node_modules/.bin/mcp-inspector");

export interface Inspected {
  /** 0: done; 5: a tool reported failure; 6: a schema that clients may not understand. */
  status: number;
  /** The method's result; null if it was refused. */
  result: Json;
  stderr: string;
}

/** `era`: the generation of the protocol. */
export async function inspect(
  daemon: TestDaemon,
  { way, era }: { way: Way; era: "legacy" | "modern" },
  method: readonly string[],
): Promise<Inspected> {
  const place =
    way === "http"
      ? [
          "--server-url",
          `${daemon.url}/mcp`,
          "--transport",
          "http",
          "--header",
          `Authorization: Bearer ${daemon.apiKey}`,
        ]
      : [BINARY, "mcp", "-e", `ROOMD_URL=${daemon.url}`, "-e", `ROOMD_API_KEY=${daemon.apiKey}`];
  const options = ["--protocol-era", era, "--format", "json", "--stored-auth-only", "--method", ...method];
  const child = spawn(process.execPath, ["--bun", INSPECTOR, "--cli", ...place, ...options], {
    // It keeps a catalog of servers in the home directory.
    env: { PATH: daemon.env.PATH ?? "", HOME: daemon.home },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (output.stdout += chunk));
  child.stderr.on("data", (chunk) => (output.stderr += chunk));
  const status = await new Promise<number>((done) => child.once("close", (code) => done(code ?? -1)));
  return { status, result: output.stdout === "" ? null : JSON.parse(output.stdout).result, stderr: output.stderr };
}

/** The arguments of the inspector that call a tool. */
export function callOf(name: string, args: Record<string, unknown>): string[] {
  return ["tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)];
}
