/** Owns screens: what a sandbox with a desktop shows, and its keyboard and mouse. How a screen is spoken to is in rfb/, pictures are in picture/. */
import type { Bound } from "../../core/operation.ts";
import { makeComputer } from "./computer.ts";
import { Connections } from "./connections.ts";
import type { ScreenDeps } from "./deps.ts";
import { makeGet } from "./get.ts";

export interface Screens {
  operations: Bound[];
  /** Ends every connection. */
  stop(): void;
}

export function makeScreens(deps: ScreenDeps): Screens {
  const connections = new Connections(deps);
  return {
    operations: [makeGet(deps, connections), makeComputer(deps, connections)],
    stop: () => connections.stop(),
  };
}
