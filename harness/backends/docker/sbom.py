"""The software bill of materials (SBOM) of an image in CycloneDX format, for vulnerability scanners."""

import json

from harness.backends.verification import Verification


def make_sbom(image: str, digest: str, found: Verification) -> str:
    """Return a CycloneDX 1.6 document (JSON) of an image: its Python and Debian packages.

    It contains no time and no random serial number, so that the same image results in the same text.
    """
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))]
    bom = Bom()
    bom.metadata.component = image_component = Component(
        name=image, type=ComponentType.CONTAINER, version=digest, bom_ref=image, hashes=hashes
    )
    for kind, namespace, packages in (("pypi", None, found.installed), ("deb", "debian", found.system)):
        for name, version in packages.items():
            url = PackageURL(kind, namespace, name, version)
            library = Component(name=name, type=ComponentType.LIBRARY, version=version, bom_ref=str(url), purl=url)
            bom.components.add(library)
            bom.register_dependency(image_component, [library])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["serialNumber"], document["metadata"]["timestamp"]
    return json.dumps(document, indent=2) + "\n"
