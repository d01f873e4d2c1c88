/** Preview of a file: its beginning as text, an image, or its first bytes. */
import { useEffect, useState } from "preact/hooks";
import type { fsRead } from "../../../../shared/api/drive.ts";
import { isReading } from "../../../../shared/audit-reads.ts";
import { Shown } from "../../components/parts.tsx";
import { Foreign, sizeText, visible } from "../../components/text.tsx";
import { get, part } from "../../data/api.ts";
import { bytesOf } from "../../data/bytes.ts";
import { useLoaded } from "../../data/resource.ts";
import { dumpOf } from "../messages/threads.ts";
import { kindOf } from "./kind.ts";

const MAX_TEXT = 64 * 1024;
const MAX_PICTURE = 4 * 1024 * 1024;

export function Preview({ roomId, path }: { roomId: string; path: string }) {
  const drive = `/v1/rooms/${part(roomId)}/drive`;
  const read = (length: number, signal: AbortSignal) => get<typeof fsRead>(`${drive}/read`, { path, length }, signal);
  const found = useLoaded(
    `file ${roomId} ${path}`,
    async (signal) => {
      const first = await read(MAX_TEXT, signal);
      const kind = kindOf(bytesOf(first.content_b64.slice(0, 64)), first.content);
      const isWhole = kind.is === "picture" && first.size_bytes > MAX_TEXT && first.size_bytes <= MAX_PICTURE;
      return { kind, file: isWhole ? await read(MAX_PICTURE, signal) : first };
    },
    (record) => record.event.startsWith("drive.") && record.details.path === path && !isReading(record),
  );
  const download = `${drive}/files${path.split("/").map(part).join("/")}`;
  // An address may contain anything: a path with `..` leads elsewhere.
  const isPlain = !path.split("/").some((name) => name === "." || name === "..");
  return (
    <section aria-label="File">
      <h2>
        <Foreign text={path} most={200} mono />
        {isPlain ? (
          <a href={download} download>
            download
          </a>
        ) : null}
      </h2>
      <Shown of={found} rows={4}>
        {({ kind, file }) => {
          const { content, content_b64: base64, size_bytes: size } = file;
          if (kind.is === "picture" && size <= MAX_PICTURE)
            return <Picture base64={base64} type={kind.type} name={path} />;
          const rest = size - file.length;
          return (
            <>
              <pre class="payload">{kind.is === "text" && content !== null ? visible(content) : dumpOf(base64)}</pre>
              <p class="muted">
                {sizeText(size)}
                {kind.is === "text" && rest > 0 ? `, of which the first ${sizeText(file.length)} are shown` : ""}
                {kind.is === "bytes" ? ", no text: the first KiB as bytes" : ""}
              </p>
            </>
          );
        }}
      </Shown>
    </section>
  );
}

function Picture({ base64, type, name }: { base64: string; type: string; name: string }) {
  const [url, show] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytesOf(base64)], { type }));
    show(made);
    return () => URL.revokeObjectURL(made);
  }, [base64, type]);
  return url ? <img class="picture" src={url} alt={visible(name)} /> : null;
}
