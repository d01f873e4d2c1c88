/** Button by which a page requests a passkey from the browser. */
import { html, type Markup } from "../../../core/markup.ts";
import type { SignInOption } from "../sign-in-options.ts";

interface PasskeyButton {
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
export function passkeyButton(offer: SignInOption | null, button: PasskeyButton): Markup | string {
  const { does, label, as = "passkey", path, isMain = false } = button;
  if (!offer) return "";
  if ("at" in offer) {
    return html`<p class="muted passkey">Passkeys need a host name. <a href="${path === undefined ? offer.at : new URL(path, offer.at).href}">Continue at ${new URL(offer.at).origin}</a></p>`;
  }
  return html`<div class="passkey"><input type="hidden" name="${as}"><button type="button" class="button${isMain ? " main" : ""}" data-passkey="${does}" data-as="${as}" data-options="${JSON.stringify(offer.options)}" hidden>${label}</button></div>`;
}
