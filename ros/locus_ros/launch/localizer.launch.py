"""ros2 launch locus_ros localizer.launch.py map:=MAP image:=IMAGE_TOPIC camera_info:=CAMERA_INFO_TOPIC"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

TOPICS = {"image": "/camera/image_raw", "camera_info": "/camera/camera_info", "depth": "/camera/depth/image_raw"}
PARAMETERS = {"map": "", "model": "locus-small", "environment": "", "use_depth": "false", "map_frame": "map"}


def generate_launch_description() -> LaunchDescription:
    arguments = [DeclareLaunchArgument(name, default_value=value) for name, value in (TOPICS | PARAMETERS).items()]
    node = Node(
        package="locus_ros",
        executable="localizer",
        name="locus",
        output="screen",
        parameters=[{name: LaunchConfiguration(name) for name in PARAMETERS}],
        remappings=[(name, LaunchConfiguration(name)) for name in TOPICS],
    )
    return LaunchDescription([*arguments, node])
