/** Button by which a page requests a passkey from the browser. */
import type { SignInOption } from "../sign-in-options.ts";

interface PasskeyButtonProps {
  offer: SignInOption | null;
  /** Whether the button creates or uses a passkey. */
  does: "make" | "use";
  label: string;
  /** The form's field for the browser's response. */
  as?: string;
  /** The page under the service's own name, if that differs from the requested name. */
  path?: string;
  isMain?: boolean;
}

/** Within a form. A browser with passkeys shows the button; empty if passkeys are not available. */
export function PasskeyButton({ offer, does, label, as = "passkey", path, isMain = false }: PasskeyButtonProps) {
  if (!offer) return null;
  if ("at" in offer) {
    return (
      <p class="muted passkey">
        Passkeys need a host name.{" "}
        <a href={path === undefined ? offer.at : new URL(path, offer.at).href}>
          Continue at {new URL(offer.at).origin}
        </a>
      </p>
    );
  }
  const look = isMain ? "button main" : "button";
  return (
    <div class="passkey">
      <input type="hidden" name={as} />
      <button
        type="button"
        class={look}
        data-passkey={does}
        data-as={as}
        data-options={JSON.stringify(offer.options)}
        hidden
      >
        {label}
      </button>
    </div>
  );
}
