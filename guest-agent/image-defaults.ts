/** Defaults of commands from the image of this root file system. A root that is from no image has none. */
import { mkdirSync, readFileSync } from "node:fs";
import { IMAGE_DEFAULTS_FILE, type ImageDefaults } from "../shared/agent-protocol/messages.ts";
import { RUNTIME } from "../shared/agent-protocol/runtime.ts";
import { ROOM_COMMAND_PLACE } from "./runtime.ts";

/** Read once: the host has written the file before the first boot. */
export const IMAGE: ImageDefaults = read(`${RUNTIME}/${IMAGE_DEFAULTS_FILE}`);

function read(file: string): ImageDefaults {
  try {
    const defaults = JSON.parse(readFileSync(file, "utf8")) as ImageDefaults;
    const { PATH } = defaults.env;
    // The directory of `room`, which no image includes.
    if (PATH !== undefined && !PATH.split(":").includes(ROOM_COMMAND_PLACE))
      defaults.env.PATH = `${PATH}:${ROOM_COMMAND_PLACE}`;
    return defaults;
  } catch {
    return { env: {}, cwd: null, user: null, start: null };
  }
}

/** Images can name a working directory that they do not contain. */
export function makeWorkingDirectory(): void {
  if (IMAGE.cwd !== null) mkdirSync(IMAGE.cwd, { recursive: true });
}
