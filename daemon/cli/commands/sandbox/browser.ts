/** `roomd browser`: the endpoint of a sandbox's browser for Playwright and Puppeteer. */
import type { Command } from "commander";
import { browserGet } from "../../../../shared/api/browser.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { type JsonOption, show } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";

export function browserCommand(): Command {
  return command("browser <room> <agent>", {
    summary: "print the URL of a sandbox's browser, for Playwright and Puppeteer, and the headers to send",
    examples: ["roomd browser build-42 worker-1", "roomd browser build-42 worker-1 --json"],
  }).action(async (room_id: string, sandbox: string, options: JsonOption) => {
    await show(await call(browserGet, { room_id, sandbox }), options, recordLines);
  });
}
