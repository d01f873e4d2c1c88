/** A picture of a screen that is refreshed while it is visible, for screens without a live view. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Shown } from "../../components/parts.tsx";
import { Clock } from "../../components/text.tsx";
import { ask } from "../../data/api.ts";
import { useLoaded } from "../../data/resource.ts";
import { useEvery } from "../../data/use-interval.ts";

/** Changes on a screen raise no event. */
const EVERY_MS = 5000;

export function Picture({ path }: { path: string }) {
  const found = useLoaded(`screen ${path}`, async (signal) => {
    const response = await ask(path, { Accept: "image/png" }, signal);
    return { blob: await response.blob(), at: new Date().toISOString() };
  });
  useEvery(true, EVERY_MS, found.again);
  return <Shown of={found}>{({ blob, at }) => <Taken blob={blob} at={at} />}</Shown>;
}

function Taken({ blob, at }: { blob: Blob; at: string }) {
  const url = useSignal("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    url.value = made;
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return (
    <figure class="screen">
      {url.value ? <img src={url.value} alt="Screen contents" decoding="async" /> : null}
      <figcaption class="muted">
        As of <Clock at={at} />. It is taken again every {EVERY_MS / 1000} seconds until the screen is seen live.
      </figcaption>
    </figure>
  );
}
