/** Notice for a message that the address names and the page does not have yet: it is being loaded, or why it is missing. */

import { Shown } from "../../components/parts.tsx";
import { Foreign } from "../../components/text.tsx";
import { part } from "../../data/api.ts";
import { useLoaded } from "../../data/resource.ts";
import type { Messages } from "./data.ts";

export function Absent({ id, roomId, reach }: { id: string; roomId: string; reach: Messages["reach"] }) {
  const found = useLoaded(`absent ${roomId} ${id}`, (signal) => reach(id, signal));
  return (
    <Shown of={found} rows={1}>
      {(isKept) => (
        <p class="warning">
          The message <Foreign text={id} most={60} mono />{" "}
          {isKept ? "is older than the messages that this page can show" : "is no longer kept"}. The{" "}
          <a href={`/audit?room=${part(roomId)}&event=message.`}>audit</a> has each message's id, sender, recipients and
          time.
        </p>
      )}
    </Shown>
  );
}
