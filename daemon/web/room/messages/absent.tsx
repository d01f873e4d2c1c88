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
          {isKept ? "is older than what this page can show" : "is not kept any more"}. The{" "}
          <a href={`/audit?room=${part(roomId)}&event=message.`}>audit</a> has who sent what to whom, and when.
        </p>
      )}
    </Shown>
  );
}
