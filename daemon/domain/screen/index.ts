/**
 * Screens: the display of a sandbox with a desktop, its keyboard and mouse, and live viewers. The RFB protocol is in rfb/, pictures are in
 * picture/.
 */
import type { Bound } from "../../core/call/operation.ts";
import { Tickets } from "../../core/call/tickets.ts";
import { makeComputer } from "./computer.ts";
import { Connections } from "./connections.ts";
import type { ScreenDeps } from "./deps.ts";
import { makeGet } from "./get.ts";
import { Films } from "./recordings/film.ts";
import { recordingOperations } from "./recordings/index.ts";
import { Recordings } from "./recordings/recordings.ts";
import { makeTicket, makeView, type ScreenGoal } from "./view.ts";
import { Viewers } from "./viewers.ts";

export interface Screens {
  operations: Bound[];
  /** Ends every connection and recording, and disconnects viewers, which may reconnect to the next daemon. */
  stop(): Promise<void>;
}

export function makeScreens(deps: ScreenDeps): Screens {
  const connections = new Connections(deps);
  const tickets = new Tickets<ScreenGoal>(deps.ticketMark);
  const viewers = new Viewers(deps);
  const recordings = new Recordings(deps);
  const films = new Films(deps);
  return {
    operations: [
      makeGet(deps, connections),
      makeComputer(deps, connections),
      makeTicket(deps, tickets),
      makeView(deps, tickets, viewers),
      ...recordingOperations(deps, recordings, films),
    ],
    stop: async () => {
      viewers.stop();
      await Promise.all([recordings.close(), films.stop()]);
      connections.stop();
    },
  };
}
