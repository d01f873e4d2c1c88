/** One message: sender, recipients, contents, and its deliveries. */
import type { MessageRecord } from "../../../../shared/api/fabric.ts";
import { Json } from "../../components/json.tsx";
import { Clock, Foreign, sizeText, visible } from "../../components/text.tsx";
import { part } from "../../data/api.ts";
import { Receipts } from "./receipts.tsx";
import { dumpOf, whomOf } from "./threads.ts";

/** A longer text is not rendered immediately. */
const MAX_TEXT = 20_000;

export function Message({ message, roomId, isOpened }: { message: MessageRecord; roomId: string; isOpened: boolean }) {
  const { message_id, source, kind, created_at, size_bytes, headers, reply_to, expires_at } = message;
  return (
    <article class={isOpened ? "message opened" : "message"} id={`message-${message_id}`}>
      <p>
        <b>
          <Foreign text={source} />
        </b>{" "}
        → <Foreign text={whomOf(message)} />{" "}
        <span class="muted">
          {kind}, {sizeText(size_bytes)}
          {reply_to === null ? "" : ", reply to "}
          {reply_to === null ? null : <Foreign text={reply_to} most={60} mono />}
        </span>{" "}
        <Clock at={created_at} />
      </p>
      <Payload message={message} />
      {Object.keys(headers).length > 0 ? <Json name="headers" value={headers} /> : null}
      <p class="muted">
        <Foreign text={message_id} mono />
        {expires_at === null ? null : (
          <>
            {" "}
            · expires <Clock at={expires_at} />
          </>
        )}{" "}
        · <a href={`/audit?room=${part(roomId)}&event=message.`}>its records</a>
      </p>
      <Receipts messageId={message_id} roomId={roomId} />
    </article>
  );
}

function Payload({ message: { payload, payload_b64, size_bytes } }: { message: MessageRecord }) {
  if (payload_b64 !== null)
    return (
      <pre class="payload">
        {dumpOf(payload_b64)}
        {size_bytes > 1024 ? `\n… ${sizeText(size_bytes)} in all` : ""}
      </pre>
    );
  if (typeof payload !== "string") return <Json name="payload" value={payload} isOpen />;
  const rest = payload.length - MAX_TEXT;
  return (
    <pre class="payload">
      {visible(payload.slice(0, MAX_TEXT))}
      {rest > 0 ? `\n… ${rest} more characters` : ""}
    </pre>
  );
}
