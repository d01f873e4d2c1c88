/** Notice on a room's page while the room is unavailable: it moves to another host, or its host does not respond. */
import type { Problem } from "../../../shared/api/errors.ts";
import { State } from "../components/parts.tsx";
import { visible } from "../components/text.tsx";
import { boot } from "../shell/boot.ts";

export function Away({ problem: { code, detail } }: { problem: Problem }) {
  return code === "room_moving" ? (
    <div class="room-away" role="status">
      <p>
        <State look="busy">moving</State> This room is moving to another host, with all its contents.
      </p>
      <p class="muted">Calls are answered again as soon as it has arrived, and this page resumes automatically.</p>
    </div>
  ) : (
    <div class="room-away is-silent" role="alert">
      <p>
        <State look="bad">host silent</State> {visible(detail)}
      </p>
      <p>
        The room keeps its name and contents. If the host runs, so does the room; only the connection to it is lost.{" "}
        {boot.sees_hosts ? (
          <>
            For remedies, see <a href="/hosts">Hosts</a>.
          </>
        ) : (
          "Contact the operator of the service: the host has to be started, or the connection to it repaired."
        )}
      </p>
      <p class="muted">This page resumes automatically as soon as the host answers.</p>
    </div>
  );
}
