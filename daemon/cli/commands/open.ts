/** `roomd open`: the address of the page of any resource with an id. */
import type { Command } from "commander";
import { locate } from "../../../shared/api/locate.ts";
import { pathOfSure } from "../../../shared/places.ts";
import { startForUser } from "../../host/background.ts";
import { call } from "../kit/client.ts";
import { command } from "../kit/command.ts";
import { findPlace } from "../kit/connection.ts";
import { type JsonOption, say, showValue } from "../kit/output.ts";

export function openCommand(): Command {
  return command("open [id]", {
    summary: "print the address of the page of a room, or of another resource by its id",
    notes: [
      "Every id that a command shows can be opened: of rooms, sandboxes, commands, terminals, messages, audit records, requests, keys,",
      "members, credit entries and SSH keys,",
      "a port's label, ROOM/AGENT and ROOM/BARRIER. Without an id it is the home page.",
    ],
    examples: ["roomd open", "roomd open build-42", "roomd open build-42/worker-1 --browser"],
  })
    .option("--browser", "also open it in a browser, if this host has a display")
    .action(async (id: string | undefined, options: JsonOption & { browser?: boolean }) => {
      const url = findPlace().url + (await pathTo(id));
      await showValue({ url }, options, () => [url]);
      if (options.browser) await browse(url);
    });
}

/** A page that follows from the id alone needs no key. */
async function pathTo(id: string | undefined): Promise<string> {
  if (id === undefined) return "/";
  return pathOfSure(id) ?? (await call(locate, { id })).value.path;
}

async function browse(url: string): Promise<void> {
  if (!process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) {
    return await say("This host has no display: open the address in your own browser.");
  }
  if (!startForUser(["xdg-open", url])) await say("xdg-open was not found: open the address in your own browser.");
}
