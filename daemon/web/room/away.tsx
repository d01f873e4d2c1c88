/** Notice on a room's page while the room is unavailable: it moves to another host, or its host does not respond. */
import type { Problem } from "../../../shared/api/errors.ts";
import { State } from "../components/parts.tsx";
import { visible } from "../components/text.tsx";
import { boot } from "../shell/boot.ts";

export function Away({ problem: { code, detail } }: { problem: Problem }) {
  return code === "room_moving" ? (
    <div class="room-away" role="status">
      <p>
        <State look="busy">moving</State> This room is on its way to another host, with all that is in it.
      </p>
      <p class="muted">Calls are answered again as soon as it is there, and this page goes on by itself.</p>
    </div>
  ) : (
    <div class="room-away is-silent" role="alert">
      <p>
        <State look="bad">host silent</State> {visible(detail)}
      </p>
      <p>
        The room keeps its name and all that is in it. If the host runs, the room goes on; only the way to it is lost.{" "}
        {boot.sees_hosts ? (
          <>
            What to do about the host, <a href="/hosts">Hosts</a> says.
          </>
        ) : (
          "Tell whoever runs the service: the host has to be started, or the way to it mended."
        )}
      </p>
      <p class="muted">This page goes on by itself as soon as the host answers.</p>
    </div>
  );
}
